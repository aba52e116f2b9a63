import { type SQL, sql } from 'drizzle-orm';
import { queryRows, type Runner } from '../../../core/sql/executor.ts';
import { arrayText } from '../../../core/sql/fence.ts';
import { BATCHES_ENTRY, type TablesOfBatches } from '../sql/batch-tables.ts';
import { type BatchRange, findLeftBatches } from './find-left-batches.ts';

/**
 * Deletes the batches that `findLeftBatches` finds. Their waits go with them, and so do tallies of batches
 * that are gone. Returns how many batches.
 *
 * **Under concurrency.** What another worker is deleting it waits for, which takes a moment.
 */
export async function deleteLeftBatches(
  db: Runner,
  tables: TablesOfBatches,
  range: BatchRange,
): Promise<number> {
  const query = deleteLeftBatchesQuery(tables, await findLeftBatches(db, tables, range));
  return (await queryRows(db, tables, query, { entry: BATCHES_ENTRY })).length;
}

export function deleteLeftBatchesQuery(tables: TablesOfBatches, ids: readonly number[]): SQL {
  const { queueBatches, queueWaits, queueTallies } = tables;
  const left = sql`any(array(select unnest(${arrayText(ids)}::text::int8[])))`;
  return sql`
    with waits as (
      delete from ${queueWaits} as w where w.batch_id = ${left}
    ),
    tallies as (
      delete from ${queueTallies} as t
      where not exists (select from ${queueBatches} as b where b.id = t.batch_id)
    )
    delete from ${queueBatches} as b where b.id = ${left}
    returning b.id`;
}
