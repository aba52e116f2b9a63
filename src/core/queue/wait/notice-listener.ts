import { Channel } from '../../drivers/channel.ts';
import { listenOrLook } from '../../drivers/listen-or-poll.ts';
import { warnOnce } from '../../drivers/warn-once.ts';
import type { QueueTables } from '../../schema/index.ts';
import { endChannel, endedIds } from '../../sql/end-notice.ts';
import type { Executor } from '../../sql/executor.ts';
import { Retries } from '../../time/retries.ts';

/**
 * How long the connection stays open without waiters: the next wait may come soon, or the process may end.
 */
const LINGER_MS = 1_000;

const NOT_HEARD =
  'A test notification did not reach this process, so its waits poll. ' +
  'Notifications do not work behind PgBouncer in transaction mode: leave awaited out';

export interface NoticeEvents {
  /** These jobs have ended. */
  ended(ids: readonly number[]): void;
  /** Notices may have been missed until now. */
  ready(): void;
}

/**
 * Receives notices of jobs that have ended, on one connection beside the pool, for as long as a waiter that
 * asked for them is waiting. A notice is only a hint: waiters poll as well, though less often while notices
 * are known to arrive. A lost connection is reopened, and jobs whose notices may have been missed are looked
 * up.
 */
export class NoticeListener {
  readonly #db: Executor;
  readonly #tables: QueueTables;
  readonly #events: NoticeEvents;
  /** How many wait. */
  #members = 0;
  #channel: Channel | undefined;
  #ending: AbortController | undefined;
  #linger: NodeJS.Timeout | undefined;

  constructor(db: Executor, tables: QueueTables, events: NoticeEvents) {
    this.#db = db;
    this.#tables = tables;
    this.#events = events;
  }

  /** Whether notices are known to arrive. */
  get hears(): boolean {
    return this.#channel?.heard ?? false;
  }

  /** One more who waits, until the returned function is called. */
  join(): () => void {
    this.#members++;
    clearTimeout(this.#linger);
    if (this.#ending === undefined) this.#begin();
    let left = false;
    return () => {
      if (left) return;
      left = true;
      if (--this.#members === 0) this.#linger = setTimeout(() => this.#ending?.abort(), LINGER_MS);
    };
  }

  #begin(): void {
    const listen = listenOrLook(this.#db);
    if (listen === undefined) return;
    const ending = new AbortController();
    const channel = new Channel({
      db: this.#db,
      tables: this.#tables,
      name: endChannel(this.#tables),
      listen,
      retries: new Retries(),
      notHeard: NOT_HEARD,
      onReady: () => this.#events.ready(),
      onNotify: (notice) => this.#events.ended(endedIds(notice)),
      onHeard: () => this.#events.ready(),
      onLost: (error, { heard }) => {
        // The app may have closed its database, and another connection would keep the process.
        if (this.#members === 0) ending.abort();
        else if (!heard) warnOnce(`Waits with awaited: true poll for now: ${messageOf(error)}`);
        // What polled seldom, since notices came.
        this.#events.ready();
      },
    });
    this.#channel = channel;
    this.#ending = ending;
    // From here on the next waiter that joins opens a new connection.
    ending.signal.addEventListener('abort', () => {
      if (this.#ending === ending) this.#ending = this.#channel = undefined;
    });
    // It never rejects.
    void channel.run(ending.signal);
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
