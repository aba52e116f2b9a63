import { nextTurn } from '../../runtime.ts';

/**
 * What is sent for many at once, one round at a time: what is added while a round is under way, or in one
 * turn of the event loop, goes into the next. So the more there is to send, the less each one costs.
 */
export class Rounds<TOne, TAnswer> {
  readonly #send: (all: readonly TOne[]) => Promise<TAnswer>;
  #added: TOne[] = [];
  #next: Promise<TAnswer> | undefined;
  /** The round that is under way. Never rejects. */
  #before: Promise<unknown> = Promise.resolve();

  constructor(send: (all: readonly TOne[]) => Promise<TAnswer>) {
    this.#send = send;
  }

  /** Resolves, or rejects, as the round in which it is sent. */
  async add(one: TOne): Promise<TAnswer> {
    this.#added.push(one);
    this.#next ??= this.#sendNext();
    return await this.#next;
  }

  async #sendNext(): Promise<TAnswer> {
    await Promise.all([nextTurn(), this.#before]);
    const all = this.#added;
    this.#added = [];
    this.#next = undefined;
    const answer = this.#send(all);
    this.#before = answer.catch(() => undefined);
    return await answer;
  }
}
