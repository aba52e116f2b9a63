import { QueueError } from '../../../errors.ts';
import type { Listen } from '../../drivers/listen.ts';
import type { Runner } from '../../sql/executor.ts';
import { Condition } from '../../time/condition.ts';

/** A connection that a worker has beside the pool. */
export interface Connection {
  readonly runner: Runner;
  /** Aborted when it is lost or given up. */
  readonly signal: AbortSignal;
  /** Takes it for dead. */
  abandon(reason: unknown): void;
}

/** The same, which knows how long it has owed an answer. */
export class OwnConnection implements Connection {
  readonly #connection: Connection;
  readonly #onAnswer: () => void;
  readonly #askedMs = new Set<{ readonly sinceMs: number }>();
  readonly #answered = new Condition();
  readonly runner: Runner = { execute: (query) => this.#execute(query) };

  /** @param onAnswer is called for each answer that comes on it */
  constructor(connection: Connection, onAnswer: () => void = () => undefined) {
    this.#connection = connection;
    this.#onAnswer = onAnswer;
  }

  get signal(): AbortSignal {
    return this.#connection.signal;
  }

  /** How long ago its first statement was sent that has no answer yet; 0 where there is none. */
  get unansweredMs(): number {
    const [first] = this.#askedMs;
    return first === undefined ? 0 : performance.now() - first.sinceMs;
  }

  abandon(reason: unknown): void {
    this.#connection.abandon(reason);
  }

  /** Resolves when it owes no answer, or the signal is aborted. */
  async idle(over: AbortSignal): Promise<void> {
    while (this.#askedMs.size > 0 && !over.aborted) {
      await this.#answered.wait(Number.POSITIVE_INFINITY, over);
    }
  }

  async #execute(query: Parameters<Runner['execute']>[0]): Promise<unknown> {
    const asked = { sinceMs: performance.now() };
    this.#askedMs.add(asked);
    try {
      const answer = await this.#connection.runner.execute(query);
      this.#onAnswer();
      return answer;
    } finally {
      this.#askedMs.delete(asked);
      this.#answered.signal();
    }
  }
}

/** A connection that is being opened, or is open. */
export interface OpeningConnection {
  /** Rejects when it cannot be opened. */
  readonly opened: Promise<Connection>;
  close(): void;
}

/** Nothing is notified on it. */
const CHANNEL = 'queue_spare';

/** Opens a connection beside the pool, as one that listens is opened: the only way that all drivers have. */
export function openBeside(listen: Listen): OpeningConnection {
  const over = new AbortController();
  const opened = new Promise<Connection>((resolve, reject) => {
    const fail = (error: unknown) => {
      reject(error);
      over.abort(error);
    };
    listen(
      CHANNEL,
      {
        ready(connection) {
          if (connection === undefined) {
            fail(new QueueError('The driver runs no statements on the connection that listens'));
            return;
          }
          const abandon = (reason: unknown) => {
            connection.destroy(reason);
            over.abort(reason);
          };
          resolve({ runner: connection.runner, signal: over.signal, abandon });
        },
        notify: () => undefined,
      },
      over.signal,
    ).then(() => fail(new QueueError('The connection was closed')), fail);
  });
  return { opened, close: () => over.abort() };
}
