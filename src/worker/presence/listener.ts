import type { Listen, ListeningConnection } from '../../drivers/listen.ts';
import { QueueError } from '../../errors.ts';
import { notifyWorkers } from '../../queries/notify-workers.ts';
import type { QueueTables } from '../../schema/create-queue-tables.ts';
import type { Database, Runner } from '../../sql/executor.ts';
import { isLoss } from '../../sql/is-loss.ts';
import { wakeChannel } from '../../sql/wake-channel.ts';
import { Condition } from '../../time/condition.ts';
import { jitter } from '../../time/jitter.ts';
import { settlesWithin } from '../../time/resolves-within.ts';
import type { Retries } from '../../time/retries.ts';
import { sleep } from '../../time/sleep.ts';
import type { WorkerEmitter } from '../attempt/events.ts';
import type { BackgroundPart } from '../background.ts';

/** A connection on which notifications have come back, so it is this worker's own for as long as it lasts. */
export interface ProvenConnection {
  readonly runner: Runner;
  /** Aborted when it is lost or given up. */
  readonly signal: AbortSignal;
  /** Takes it for dead, for all workers that share it; another is made. */
  abandon(reason: unknown): void;
}

export interface ListenerOptions {
  readonly db: Database;
  readonly tables: QueueTables;
  /** How the driver listens; `undefined` when it cannot, or must not. */
  readonly listen: Listen | undefined;
  readonly events: WorkerEmitter;
  readonly retries: Retries;
  /** A job was enqueued into this queue; `undefined`: perhaps into any, as notifications may be missed. */
  readonly onWake: (queue: string | undefined) => void;
  /** Called when it must poll: what asks seldom while notifications arrive has to ask more often. */
  readonly onPolling?: () => void;
  /** Called with each connection on which notifications come back and statements can run. */
  readonly onProven?: (connection: ProvenConnection) => void;
  /** Called when none is to be expected: the driver has none, must not listen, or hears nothing. */
  readonly onUnproven?: () => void;
}

/** A notification to oneself comes back within this time, or notifications do not come here. */
const ECHO_MS = 5_000;
/** After this long without a notification, the connection is tested: a firewall may have dropped it. */
const QUIET_MS = 60_000;
const FIRST_RETRY_MS = 100;
const MAX_RETRY_MS = 60_000;

/**
 * Hears of enqueued jobs on one connection for all queues of a worker. Only a hint: while nothing is heard
 * the worker polls. It counts as listening only once a notification to itself has come back: behind PgBouncer
 * in transaction mode `LISTEN` succeeds, and nothing ever comes.
 */
export class Listener implements BackgroundPart {
  readonly #options: ListenerOptions;
  #listening = false;
  /** A notification to itself has come back once: there is no pooler in transaction mode in between. */
  #proven = false;
  /** How often in a row listening has ended, or could not begin. */
  #failures = 0;
  /** The tests that are under way. */
  readonly #tests = new Set<Promise<void>>();

  constructor(options: ListenerOptions) {
    this.#options = options;
  }

  /** Whether notifications are known to arrive. */
  get listening(): boolean {
    return this.#listening;
  }

  async run(signal: AbortSignal): Promise<void> {
    const { listen, onUnproven } = this.#options;
    if (listen === undefined) {
      onUnproven?.();
      this.#announcePolling(undefined);
    }
    if (listen !== undefined) await this.#keepListening(listen, signal);
    this.#listening = false;
    await Promise.all(this.#tests);
  }

  async #keepListening(listen: Listen, stopping: AbortSignal): Promise<void> {
    while (!stopping.aborted) {
      const connection = new AbortController();
      const end = () => connection.abort();
      stopping.addEventListener('abort', end);
      const heard = new Condition();
      let tested = false;
      let error: unknown;
      try {
        await listen(
          wakeChannel(this.#options.tables),
          {
            ready: (listening) => {
              this.#options.onWake(undefined);
              // Drivers that connect anew by themselves are ready again in the same call.
              if (!tested) this.#keepTesting(connection, heard, listening);
              tested = true;
            },
            notify: (payload) => {
              heard.signal();
              this.#options.onWake(payload);
            },
          },
          connection.signal,
        );
        error = connection.signal.reason;
      } catch (thrown) {
        error = thrown;
      }
      stopping.removeEventListener('abort', end);
      connection.abort();
      heard.signal();
      if (stopping.aborted) return;
      this.#lose(error);
      const retryMs = Math.min(FIRST_RETRY_MS * 2 ** this.#failures++, MAX_RETRY_MS);
      await this.#options.retries.sleep(jitter(retryMs), stopping);
    }
  }

  #lose(error: unknown): void {
    const { events } = this.#options;
    // Once per outage, not for every try to end it.
    if (this.#failures === 0) events.emit('error', { error, during: 'listening' });
    const announced = !this.#listening && this.#failures > 0;
    this.#listening = false;
    if (!announced) this.#announcePolling(error);
  }

  #announcePolling(error: unknown): void {
    this.#options.onPolling?.();
    this.#options.events.emit('polling', { error });
  }

  #keepTesting(
    connection: AbortController,
    heard: Condition,
    listening: ListeningConnection | undefined,
  ): void {
    const test = this.#test(connection, heard, listening).finally(() => this.#tests.delete(test));
    this.#tests.add(test);
  }

  /** Sends notifications to itself, at once and whenever it has been quiet, until one does not come back. */
  async #test(
    connection: AbortController,
    heard: Condition,
    listening: ListeningConnection | undefined,
  ): Promise<void> {
    const { events, onProven, onUnproven } = this.#options;
    const { signal } = connection;
    const abandon = (reason: unknown) => {
      listening?.destroy(reason);
      connection.abort(reason);
    };
    const offer = () => {
      if (listening) onProven?.({ runner: listening.runner, signal, abandon });
    };
    if (listening === undefined) onUnproven?.();
    // The successor of a proven connection skips the echo, which takes the pool: its session is urgent.
    const offered = this.#proven;
    if (offered) offer();
    try {
      while (!signal.aborted) {
        heard.clear();
        await this.#notifyItself(signal);
        if (signal.aborted) return;
        if (!(await settlesWithin(heard.wait(Number.POSITIVE_INFINITY), ECHO_MS))) throw notHeard();
        if (signal.aborted) return;
        this.#failures = 0;
        if (!offered && !this.#proven) offer();
        this.#proven = true;
        if (!this.#listening) {
          this.#listening = true;
          events.emit('listening');
        }
        while (!signal.aborted) if (!(await heard.wait(jitter(QUIET_MS)))) break;
      }
    } catch (error) {
      onUnproven?.();
      abandon(error);
    }
  }

  /**
   * It names no queue. Other workers on the channel hear it too, so it tests their connections as well. The
   * pool may hand out a connection that was lost together with the one before this: that is no reason to give
   * this one up, for all who share it.
   */
  async #notifyItself(signal: AbortSignal): Promise<void> {
    const { db, tables } = this.#options;
    const untilMs = performance.now() + ECHO_MS;
    while (!signal.aborted) {
      try {
        await notifyWorkers(db, tables, `test of ${crypto.randomUUID()}`);
        return;
      } catch (error) {
        if (!isLoss(error) || performance.now() > untilMs) throw error;
        await sleep(jitter(FIRST_RETRY_MS), signal);
      }
    }
  }
}

function notHeard(): QueueError {
  return new QueueError(
    'A notification to itself did not reach this worker, so it polls. ' +
      'Behind PgBouncer in transaction mode none ever does: set listen: false',
  );
}
