/** After an answer the database rests so many times as long as that has taken: it costs 0.5 % of the time. */
const REST = 200;
/** A table that is locked, or a pool without a free connection, says little about the next time. */
const MAX_REST_MS = 600_000;

/**
 * An answer that costs time, shared by all who ask. One is asked for at a time, and the next not before the
 * database has rested; until then everybody gets the last one. An error is not kept.
 */
export class SharedAnswer<T> {
  #last: { readonly answer: T; readonly until: number } | undefined;
  #flight: Promise<T> | undefined;

  get(ask: () => Promise<T>): Promise<T> {
    if (this.#last !== undefined && performance.now() < this.#last.until) {
      return Promise.resolve(this.#last.answer);
    }
    this.#flight ??= this.#ask(ask).finally(() => {
      this.#flight = undefined;
    });
    return this.#flight;
  }

  async #ask(ask: () => Promise<T>): Promise<T> {
    const startMs = performance.now();
    const answer = await ask();
    const endMs = performance.now();
    this.#last = { answer, until: endMs + Math.min((endMs - startMs) * REST, MAX_REST_MS) };
    return answer;
  }
}
