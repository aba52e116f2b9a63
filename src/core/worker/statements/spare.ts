import { Condition } from '../../time/condition.ts';
import { resultWithin } from '../../time/resolves-within.ts';
import { sleep } from '../../time/sleep.ts';
import { type OpeningConnection, OwnConnection } from './own-connection.ts';

/** A connection that has owed an answer for this long is not asked any more. */
const PROMPT_MS = 1_000;
/** One that does not open within this time is tried again. */
const OPENING_MS = 5_000;
const AGAIN_MS = 500;

/**
 * The connection that serves in the place of a silent pool: the one that listens, or one that is opened for
 * as long as it is needed. While each of them owes an answer, there is one more.
 */
export class Spare {
  readonly #open: (() => OpeningConnection) | undefined;
  readonly #changed = new Condition();
  #offered: OwnConnection | undefined;
  /** Connections that are being opened, or are open, until {@link rest}. */
  #openings = new Map<OpeningConnection, OwnConnection | undefined>();
  /** Aborted when those that were opened are not needed any more; `undefined` while none is. */
  #wanted: AbortController | undefined;
  readonly #over = new AbortController();

  /** @param open `undefined` where the driver has no connection beside the pool */
  constructor(open: (() => OpeningConnection) | undefined) {
    this.#open = open;
  }

  /** Whether there may ever be one. */
  get isPossible(): boolean {
    return this.#open !== undefined || this.#offered !== undefined;
  }

  /** One that answers, as far as is known. */
  get connection(): OwnConnection | undefined {
    return [this.#offered, ...this.#openings.values()].find(
      (one) => one !== undefined && !one.signal.aborted && one.unansweredMs < PROMPT_MS,
    );
  }

  /** Takes the connection that listens. */
  offer(connection: OwnConnection): void {
    this.#offered = connection;
    this.#changed.signal();
  }

  /** Sees to it that there is one, until {@link rest} or {@link end}. */
  want(): void {
    if (this.#open === undefined || this.#wanted !== undefined || this.#over.signal.aborted) return;
    this.#wanted = new AbortController();
    void this.#keepOpen(this.#open, this.#wanted.signal);
  }

  /** The pool answers again. What was sent on a connection that was opened is still answered there. */
  rest(): void {
    this.#wanted?.abort();
    this.#wanted = undefined;
    this.#openings = new Map();
  }

  /** Closes it, whatever it owes. */
  end(): void {
    this.#over.abort();
    this.rest();
  }

  /** Resolves when there is one, or the signal is aborted. */
  async ready(signal: AbortSignal): Promise<void> {
    while (this.connection === undefined && !signal.aborted) {
      await this.#changed.wait(PROMPT_MS / 4, signal);
    }
  }

  /** Never rejects: without it, statements try the pool. */
  async #keepOpen(open: () => OpeningConnection, unwanted: AbortSignal): Promise<void> {
    const openings = this.#openings;
    // One listener for all of them: in a long outage there are many.
    const closeAll = () =>
      openings.forEach((own, opening) => {
        if (own === undefined) opening.close();
        else void own.idle(this.#over.signal).then(() => opening.close());
      });
    unwanted.addEventListener('abort', closeAll, { once: true });
    while (!unwanted.aborted) {
      // The one that listens may be back by itself.
      if (this.connection === undefined) {
        const opening = open();
        openings.set(opening, undefined);
        const connection = await resultWithin(opening.opened, OPENING_MS).catch(() => undefined);
        if (connection === undefined || unwanted.aborted) {
          opening.close();
          openings.delete(opening);
        } else {
          connection.signal.addEventListener('abort', () => openings.delete(opening), { once: true });
          openings.set(opening, new OwnConnection(connection));
          this.#changed.signal();
        }
      }
      await sleep(AGAIN_MS, unwanted);
    }
  }
}
