import { type SQL, sql } from 'drizzle-orm';
import type { QueueTables } from '../../schema/create-queue-tables.ts';
import { type Executor, queryRows } from '../../sql/executor.ts';

/** A worker that has not renewed its row for long. */
export interface SilentWorker {
  readonly name: string;
  readonly silentMs: number;
}

/** The workers unseen for `silentMs`, the longest first. A plain read, which declares no worker gone. */
export async function findSilentWorkers(
  db: Executor,
  tables: QueueTables,
  silentMs: number,
): Promise<SilentWorker[]> {
  const rows = await queryRows(db, tables, findSilentWorkersQuery(tables, silentMs));
  return rows.map((row) => ({ name: String(row.name), silentMs: Number(row.silent_ms) }));
}

export function findSilentWorkersQuery({ queueWorkers }: QueueTables, silentMs: number): SQL {
  return sql`
    select w.name, extract(epoch from statement_timestamp() - w.seen_at)::float8 * 1000 as silent_ms
    from ${queueWorkers} as w
    where w.seen_at < statement_timestamp() - ${silentMs}::float8 * interval '1 millisecond'
    order by w.seen_at limit 100`;
}
