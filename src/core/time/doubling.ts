/**
 * How long to wait before each further try: every time twice as long as before. Without arguments as a
 * statement waits that the database has not answered.
 */
export class Doubling {
  #waits = 0;

  constructor(
    readonly firstMs = 100,
    readonly mostMs = 5_000,
  ) {}

  /** Whether the next wait is the first, at the start or after a {@link reset}. */
  get isFirst(): boolean {
    return this.#waits === 0;
  }

  /** The milliseconds of the next wait. */
  next(): number {
    return Math.min(this.firstMs * 2 ** this.#waits++, this.mostMs);
  }

  /** A try has succeeded, or there is news: the next wait is short again. */
  reset(): void {
    this.#waits = 0;
  }
}
