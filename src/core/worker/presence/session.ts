import type { SQLWrapper } from 'drizzle-orm';
import { QueueError } from '../../../errors.ts';
import type { ProvenConnection } from '../../drivers/channel.ts';
import { type HeldSession, lockSession } from '../../queries/presence/lock-session.ts';
import { unlockSession } from '../../queries/presence/unlock-session.ts';
import type { QueueTables } from '../../schema/create-queue-tables.ts';
import type { Runner } from '../../sql/executor.ts';
import { isLoss } from '../../sql/is-loss.ts';
import { Doubling } from '../../time/doubling.ts';
import { jitter } from '../../time/jitter.ts';
import { settlesWithin } from '../../time/resolves-within.ts';
import { sleep } from '../../time/sleep.ts';
import type { WorkerEmitter } from '../base/events.ts';

export interface SessionOptions {
  readonly db: Runner;
  readonly tables: QueueTables;
  readonly events: WorkerEmitter;
  /** Called when the lock was taken, and when it was lost. */
  readonly onChange: () => void;
  /** Called when the server refuses it. */
  readonly onRefused: () => void;
}

/** Soon at first: a peer's test takes a millisecond. Later the server must notice a dead connection. */
const MAX_RETRY_MS = 1_000;
/** After this a statement goes to the pool too: peers need a sign of life before they declare it gone. */
const PROMPT_MS = 1_000;
/** After this the connection is taken for dead. */
const PATIENCE_MS = 5_000;

/**
 * A worker's session: an advisory lock that it holds on the connection that listens, for as long as that
 * lasts. When the process dies the server closes the connection and frees the lock, which peers find out
 * within seconds; a process that is merely busy keeps it. Signs of life travel on the same connection: they
 * get through when handlers hold the whole pool, and a connection that has died without a word is noticed.
 */
export class Session {
  readonly #options: SessionOptions;
  #connection: ProvenConnection | undefined;
  #held: HeldSession | undefined;
  /** The connection that still owes an answer. */
  #asked: ProvenConnection | undefined;

  constructor(options: SessionOptions) {
    this.#options = options;
  }

  /** The server's process id for the connection that holds the lock; `undefined` when none is known to. */
  get pid(): number | undefined {
    return this.#connection && this.#held?.pid;
  }

  get node(): string | undefined {
    return this.#connection && this.#held?.node;
  }

  /** Takes the lock on this connection and keeps it until the connection is lost. Never rejects. */
  async hold(connection: ProvenConnection, workerId: number): Promise<void> {
    const { tables, events, onChange, onRefused } = this.#options;
    const { runner, signal } = connection;
    let held: HeldSession | undefined;
    try {
      for (const delays = new Doubling(50, MAX_RETRY_MS); held === undefined; ) {
        held = await lockSession(runner, tables, workerId);
        if (signal.aborted) break;
        if (held === undefined) await sleep(jitter(delays.next()), signal);
      }
    } catch (error) {
      // The listener reports a lost connection, and makes another a moment later.
      await sleep(MAX_RETRY_MS, signal);
      if (signal.aborted) return;
      // Without a lock the worker is known by its heartbeat.
      events.emit('error', { error, during: 'taking the session lock' });
      onRefused();
      return;
    }
    if (signal.aborted) {
      if (held !== undefined) await this.#unlock(connection, workerId);
      return;
    }
    this.#held = held;
    this.#connection = connection;
    signal.addEventListener(
      'abort',
      () => {
        if (this.#connection !== connection) return;
        void this.release(workerId);
        onChange();
      },
      { once: true },
    );
    onChange();
  }

  /** The lock was found free by `pid`: unless that is its own, the server has ended the session silently. */
  noteUnlocked(pid: number): void {
    if (pid === this.#held?.pid) return;
    this.#connection?.abandon(new QueueError('The session lock of this worker is no longer held'));
  }

  /** Gives the lock back: others may go on using the connection, and would keep it. */
  async release(workerId: number): Promise<void> {
    const connection = this.#connection;
    this.#connection = undefined;
    if (connection) await this.#unlock(connection, workerId);
  }

  async #unlock({ runner }: ProvenConnection, workerId: number): Promise<void> {
    // If this fails because the connection is lost, the server frees the lock.
    await unlockSession(runner, this.#options.tables, workerId).catch(() => undefined);
  }

  /** Uses the session's connection; without one, or when it is slow, the pool. Running twice does no harm. */
  readonly runner: Runner = { execute: (query) => this.#execute(query) };

  async #execute(query: SQLWrapper): Promise<unknown> {
    const { db } = this.#options;
    const connection = this.#connection;
    if (connection === undefined || this.#asked === connection) return await db.execute(query);
    const answer = this.#ask(connection, query);
    if (!(await settlesWithin(answer, PROMPT_MS))) {
      void this.#giveUpOn(connection, answer);
      return await db.execute(query);
    }
    try {
      return await answer;
    } catch (error) {
      if (!isLoss(error)) throw error;
      connection.abandon(error);
      return await db.execute(query);
    }
  }

  async #ask(connection: ProvenConnection, query: SQLWrapper): Promise<unknown> {
    this.#asked = connection;
    try {
      return await connection.runner.execute(query);
    } finally {
      if (this.#asked === connection) this.#asked = undefined;
    }
  }

  async #giveUpOn(connection: ProvenConnection, answer: Promise<unknown>): Promise<void> {
    if (await settlesWithin(answer, PATIENCE_MS)) return;
    connection.abandon(new QueueError(`The connection that listens has not answered for ${PATIENCE_MS} ms`));
  }
}
