import { type SQL, sql } from 'drizzle-orm';
import { queryRows, type Runner } from '../../../core/sql/executor.ts';
import { BATCHES_ENTRY, type TablesOfBatches } from '../sql/batch-tables.ts';

/** What a job has waited for, before it could begin. */
export interface Waited {
  readonly batchIds: readonly number[];
  readonly total: number;
  readonly failed: number;
}

/**
 * The batches for whose end a job has waited, or the one that it is a fork of, with what was counted of
 * them.
 *
 * **Under concurrency.** A plain read. They have ended, so their counts change only when members are put
 * back.
 */
export async function findWaited(
  db: Runner,
  tables: TablesOfBatches,
  job: { readonly id: number; readonly queue: string },
): Promise<Waited> {
  const rows = await queryRows(db, tables, findWaitedQuery(tables, job), { entry: BATCHES_ENTRY });
  const sum = (column: string) => rows.reduce((all, row) => all + Number(row[column]), 0);
  return { batchIds: rows.map(({ id }) => Number(id)), total: sum('total'), failed: sum('failed') };
}

export function findWaitedQuery(
  { queueBatches, queueWaits }: TablesOfBatches,
  { id, queue }: { readonly id: number; readonly queue: string },
): SQL {
  return sql`
    select b.id, b.total::float8 as total, b.failed::float8 as failed
    from ${queueWaits} as w join ${queueBatches} as b on b.id = w.batch_id
    where w.job_id = ${id}::int8 and w.queue = ${queue} and w.policy in ('run', 'cancel', 'forked')
    order by b.id`;
}
