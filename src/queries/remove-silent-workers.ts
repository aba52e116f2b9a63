import { type SQL, sql } from 'drizzle-orm';
import type { QueueTables } from '../schema/create-queue-tables.ts';
import { type Executor, queryRows } from './executor.ts';

/**
 * Declares workers gone that have not been seen for `silentMs`; answers their names. Their jobs are due again for the
 * next sweep.
 *
 * **Under concurrency.** A row that is being beaten at this moment is locked, and skipped: its worker is alive. Times are all
 * the database's, so the clocks of the app's hosts play no part.
 */
export async function removeSilentWorkers(
  db: Executor,
  tables: QueueTables,
  silentMs: number,
): Promise<string[]> {
  const rows = await queryRows(db, tables, removeSilentWorkersQuery(tables, silentMs));
  return rows.map((row) => String(row.name));
}

export function removeSilentWorkersQuery({ queueWorkers }: QueueTables, silentMs: number): SQL {
  return sql`
    with silent as (
      select w.id from ${queueWorkers} as w
      where w.seen_at < statement_timestamp() - ${silentMs}::float8 * interval '1 millisecond'
      for update skip locked
    )
    delete from ${queueWorkers} as w where w.id = any(array(select id from silent))
    returning w.name`;
}
