/** After an answer the database rests so many times as long as that has taken: it costs 0.5 % of the time. */
const REST = 200;
/**
 * A table that is locked, or a pool without a free connection, says little about the next time; and of many
 * who ask for different answers none shall wait for hours.
 */
const MAX_REST_MS = 600_000;

/** The rest of the database, shared by several answers: theirs come one after the other. */
export class Rest {
  #until = 0;
  readonly #times: number;

  /** @param times so many times as long as an answer has taken */
  constructor(times = REST) {
    this.#times = times;
  }

  /** When what took so long may be asked for again, by the monotonic clock. */
  after(tookMs: number): number {
    const from = Math.max(this.#until, performance.now());
    this.#until = Math.min(from + tookMs * this.#times, performance.now() + MAX_REST_MS);
    return this.#until;
  }
}
