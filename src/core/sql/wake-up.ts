import { type SQL, sql } from 'drizzle-orm';
import { OTHERS_NOTIFY } from './wake-channel.ts';

/** Whom a statement that inserts jobs may notify. */
export interface WakeUp {
  readonly channel: string;
  /** The queues whose workers may be notified now; the statement's other queues are not notified. */
  readonly queues: readonly string[];
  /** Whether other enqueues notify as well for now, so that workers need not look for those that do not. */
  readonly othersNotify: boolean;
}

/** What a statement tells the workers of its one queue. */
export function wakePayload(queue: string, { othersNotify }: WakeUp): SQL {
  return sql`${othersNotify ? `${OTHERS_NOTIFY}${queue}` : queue}::text`;
}

/**
 * `true`; notifies the workers of `queue` when the transaction commits. Use it in the outermost select of a
 * statement, above the insert: `RETURNING` would call it once per row, and Postgres does not run a CTE that
 * nothing reads.
 */
export function notified(channel: string, queue: SQL): SQL {
  return sql`pg_notify(${channel}::text, ${queue}) is not null`;
}
