import type { Rest } from './rest.ts';

/**
 * An answer that costs time, shared by all who ask. One is asked for at a time, and the next not before the
 * database has rested; until then everybody gets the last one. An error is not kept.
 */
export class SharedAnswer<T> {
  #last: { readonly answer: T; readonly until: number } | undefined;
  #flight: Promise<T> | undefined;
  readonly #rest: Rest;

  constructor(rest: Rest) {
    this.#rest = rest;
  }

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
    this.#last = { answer, until: this.#rest.after(performance.now() - startMs) };
    return answer;
  }
}
