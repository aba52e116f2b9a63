import { QueueError } from '../../errors.ts';
import { notifyWorkers } from '../queries/presence/notify-workers.ts';
import type { QueueTables } from '../schema/create-queue-tables.ts';
import type { Runner } from '../sql/executor.ts';
import { isLoss } from '../sql/is-loss.ts';
import { Condition } from '../time/condition.ts';
import { Doubling } from '../time/doubling.ts';
import { jitter } from '../time/jitter.ts';
import { settlesWithin } from '../time/resolves-within.ts';
import type { Retries } from '../time/retries.ts';
import { sleep } from '../time/sleep.ts';
import type { Listen, ListeningConnection } from './listen.ts';

/** A connection on which notifications have come back: the listener's own for as long as it lasts. */
export interface ProvenConnection {
  readonly runner: Runner;
  /** Aborted when it is lost or given up. */
  readonly signal: AbortSignal;
  /** Takes it for dead, for all who share it; another is made. */
  abandon(reason: unknown): void;
}

export interface ChannelOptions {
  readonly db: Runner;
  readonly tables: QueueTables;
  /** The name on which it listens: only `[a-z0-9_]`. */
  readonly name: string;
  readonly listen: Listen;
  readonly retries: Retries;
  /** What there is to say where no notification comes back. */
  readonly notHeard: string;
  /** It listens, perhaps again: what was notified before may have been missed. */
  readonly onReady: () => void;
  readonly onNotify: (payload: string) => void;
  /** Notifications are known to arrive, perhaps again. */
  readonly onHeard: () => void;
  /**
   * Listening has ended, or could not begin.
   *
   * @param first whether it is the first failure in a row
   * @param heard whether notifications were known to arrive until now
   */
  readonly onLost: (error: unknown, is: { readonly first: boolean; readonly heard: boolean }) => void;
  /** Called with each connection on which notifications come back and statements can run. */
  readonly onProven?: (connection: ProvenConnection) => void;
  /** Called when none is to be expected: the driver has none, or hears nothing. */
  readonly onUnproven?: () => void;
}

/** A notification to oneself comes back within this time, or notifications do not come here. */
const ECHO_MS = 5_000;
/** After this long without a notification, the connection is tested: a firewall may have dropped it. */
const QUIET_MS = 60_000;
const FIRST_RETRY_MS = 100;

/**
 * A channel of notifications, on one connection at a time, which is reopened when it is lost. The channel
 * counts as working only after a notification to itself has come back: behind PgBouncer in transaction mode
 * `LISTEN` succeeds, but no notification ever arrives.
 */
export class Channel {
  readonly #options: ChannelOptions;
  #heard = false;
  /** A notification to itself has come back once: there is no pooler in transaction mode in between. */
  #proven = false;
  /** How often in a row listening has ended, or could not begin. */
  readonly #delays = new Doubling(FIRST_RETRY_MS, 60_000);
  /** The tests that are under way. */
  readonly #tests = new Set<Promise<void>>();

  constructor(options: ChannelOptions) {
    this.#options = options;
  }

  /** Whether notifications are known to arrive. */
  get heard(): boolean {
    return this.#heard;
  }

  /** Listens until the signal is aborted; resolves once no timer, statement or connection of it is left. */
  async run(signal: AbortSignal): Promise<void> {
    await this.#keepListening(signal);
    this.#heard = false;
    await Promise.all(this.#tests);
  }

  async #keepListening(stopping: AbortSignal): Promise<void> {
    const { name, listen, retries, onReady, onNotify } = this.#options;
    while (!stopping.aborted) {
      const connection = new AbortController();
      const end = () => connection.abort();
      stopping.addEventListener('abort', end);
      const heard = new Condition();
      let tested = false;
      let error: unknown;
      try {
        await listen(
          name,
          {
            ready: (listening) => {
              onReady();
              // Drivers that reconnect by themselves are ready again in the same call.
              if (!tested) this.#keepTesting(connection, heard, listening);
              tested = true;
            },
            notify: (payload) => {
              heard.signal();
              onNotify(payload);
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
      const is = { first: this.#delays.isFirst, heard: this.#heard };
      this.#heard = false;
      this.#options.onLost(error, is);
      await retries.sleep(jitter(this.#delays.next()), stopping);
    }
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
    const { notHeard, onHeard, onProven, onUnproven } = this.#options;
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
        if (!(await settlesWithin(heard.wait(Number.POSITIVE_INFINITY), ECHO_MS))) {
          throw new QueueError(notHeard);
        }
        if (signal.aborted) return;
        this.#delays.reset();
        if (!offered && !this.#proven) offer();
        this.#proven = true;
        if (!this.#heard) {
          this.#heard = true;
          onHeard();
        }
        while (!signal.aborted) if (!(await heard.wait(jitter(QUIET_MS)))) break;
      }
    } catch (error) {
      onUnproven?.();
      abandon(error);
    }
  }

  /**
   * Others on the channel hear it too, so it tests their connections as well. The pool may hand out a
   * connection that was lost together with the previous one. That is not a reason to give up this connection,
   * which others share.
   */
  async #notifyItself(signal: AbortSignal): Promise<void> {
    const { db, tables, name } = this.#options;
    const untilMs = performance.now() + ECHO_MS;
    while (!signal.aborted) {
      try {
        await notifyWorkers(db, tables, `test of ${crypto.randomUUID()}`, name);
        return;
      } catch (error) {
        if (!isLoss(error) || performance.now() > untilMs) throw error;
        await sleep(jitter(FIRST_RETRY_MS), signal);
      }
    }
  }
}
