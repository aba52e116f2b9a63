import { nextTurn } from '../../runtime.ts';

/**
 * What is sent for many at once, one round at a time: what is added while a round is under way, or in one
 * turn of the event loop, goes into the next. So the more there is to send, the less each one costs.
 */
export class Rounds<TOne, TAnswer> {
  readonly #send: (all: readonly TOne[]) => Promise<TAnswer>;
  readonly #most: number;
  #added: TOne[] = [];
  /** The round that `#added` goes into; `undefined` once it is under way. */
  #next: Promise<TAnswer> | undefined;
  /** The last round. Never rejects. */
  #last: Promise<unknown> = Promise.resolve();

  /** @param most how many are sent at once */
  constructor(
    send: (all: readonly TOne[]) => Promise<TAnswer>,
    { most = Number.POSITIVE_INFINITY }: { readonly most?: number } = {},
  ) {
    this.#send = send;
    this.#most = most;
  }

  /** Resolves, or rejects, as the round in which it is sent. */
  async add(one: TOne): Promise<TAnswer> {
    if (this.#next === undefined || this.#added.length >= this.#most) {
      this.#added = [];
      this.#next = this.#sendAfterLast(this.#added);
      this.#last = this.#next.catch(() => undefined);
    }
    this.#added.push(one);
    return await this.#next;
  }

  async #sendAfterLast(added: readonly TOne[]): Promise<TAnswer> {
    await Promise.all([nextTurn(), this.#last]);
    if (this.#added === added) this.#next = undefined;
    return await this.#send(added);
  }
}
