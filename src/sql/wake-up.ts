import { type SQL, sql } from 'drizzle-orm';

/** What a statement that inserts jobs is told about waking workers. */
export interface WakeUp {
  /** Of the tables: see `wakeChannel`. */
  readonly channel: string;
  /** The queues whose workers may be notified now; those of its other queues are not. */
  readonly queues: readonly string[];
}

/**
 * Notifies the workers of `queue` when the transaction commits; `true`. To stand in the outermost select of a statement, above
 * the insert: `RETURNING` calls it once for every row, and a CTE that nothing reads is never run.
 */
export function notified(channel: string, queue: SQL): SQL {
  return sql`pg_notify(${channel}::text, ${queue}) is not null`;
}
