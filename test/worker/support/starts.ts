import { expect } from 'vitest';

export interface Rate {
  readonly limit: number;
  readonly perMs: number;
}

/** When handlers have begun, by a clock that all processes of a machine share. */
export class Starts {
  #starts: { atMs: number; cost: number }[] = [];

  note(cost = 1, atMs = performance.timeOrigin + performance.now()): void {
    this.#starts.push({ atMs, cost });
  }

  get count(): number {
    return this.#starts.length;
  }

  get cost(): number {
    return this.#starts.reduce((sum, { cost }) => sum + cost, 0);
  }

  get spanMs(): number {
    return (this.#starts.at(-1)?.atMs ?? 0) - (this.#starts[0]?.atMs ?? 0);
  }

  /** How long the last of them took together; 0 while there are fewer. */
  spanOfLastMs(count: number): number {
    const first = this.#starts.at(-count);
    return first === undefined ? 0 : (this.#starts.at(-1)?.atMs ?? 0) - first.atMs;
  }

  restart(): void {
    this.#starts = [];
  }

  /** No window, wherever it begins, sees more than the limit. */
  expectWithin({ limit, perMs }: Rate): void {
    const starts = this.#starts.toSorted((a, b) => a.atMs - b.atMs);
    let most = 0;
    for (const [at, { atMs }] of starts.entries()) {
      const within = starts.slice(at).filter((other) => other.atMs < atMs + perMs);
      most = Math.max(
        most,
        within.reduce((sum, { cost }) => sum + cost, 0),
      );
    }
    expect(most).toBeLessThanOrEqual(limit);
  }
}
