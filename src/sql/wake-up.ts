import { type SQL, sql } from 'drizzle-orm';

/** Whom a statement that inserts jobs may notify. */
export interface WakeUp {
  readonly channel: string;
  /** The queues whose workers may be notified now; the statement's other queues are not notified. */
  readonly queues: readonly string[];
}

/**
 * `true`; notifies the workers of `queue` when the transaction commits. Use it in the outermost select of a
 * statement, above the insert: `RETURNING` would call it once per row, and Postgres does not run a CTE that
 * nothing reads.
 */
export function notified(channel: string, queue: SQL): SQL {
  return sql`pg_notify(${channel}::text, ${queue}) is not null`;
}
