/** Runs tasks that have a key in common one after the other, in the order in which they came. */
export class Turns<TKey> {
  readonly #last = new Map<TKey, Promise<unknown>>();

  async take<T>(keys: readonly TKey[], task: () => Promise<T>): Promise<T> {
    const before = keys.flatMap((key) => this.#last.get(key) ?? []);
    const run = before.length === 0 ? task() : Promise.all(before).then(task);
    const over = run.catch(() => undefined);
    for (const key of keys) this.#last.set(key, over);
    return await run;
  }
}
