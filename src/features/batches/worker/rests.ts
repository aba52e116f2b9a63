/** When each of some batches is tried again: later and later, for as long as that does not succeed. */
export class Rests {
  readonly #firstMs: number;
  readonly #mostMs: number;
  readonly #rests = new Map<number, { readonly restMs: number; readonly againAtMs: number }>();

  constructor({ first, most }: { readonly first: number; readonly most: number }) {
    this.#firstMs = first;
    this.#mostMs = most;
  }

  get ids(): Iterable<number> {
    return this.#rests.keys();
  }

  /** When the first of them is tried again, by the monotonic clock. */
  get nextMs(): number {
    let nextMs = Number.POSITIVE_INFINITY;
    for (const { againAtMs } of this.#rests.values()) nextMs = Math.min(nextMs, againAtMs);
    return nextMs;
  }

  has(id: number): boolean {
    return this.#rests.has(id);
  }

  /** What to try again, beginning with what has waited the longest. */
  due(nowMs: number): number[] {
    const due = [...this.#rests].filter(([, { againAtMs }]) => againAtMs <= nowMs);
    return due.sort(([, one], [, other]) => one.againAtMs - other.againAtMs).map(([id]) => id);
  }

  /** They are to be tried at once. */
  begin(ids: readonly number[]): void {
    for (const id of ids) this.#rests.set(id, { restMs: 0, againAtMs: 0 });
  }

  /** After a try without success: they rest twice as long as before. */
  add(ids: readonly number[]): void {
    for (const id of ids) {
      const lastMs = this.#rests.get(id)?.restMs ?? 0;
      const restMs = Math.min(Math.max(2 * lastMs, this.#firstMs), this.#mostMs);
      this.#rests.set(id, { restMs, againAtMs: performance.now() + restMs });
    }
  }

  remove(ids: readonly number[]): void {
    for (const id of ids) this.#rests.delete(id);
  }
}
