import { type SQL, sql } from 'drizzle-orm';
import { queryRows, type Runner } from '../../../core/sql/executor.ts';
import { BATCHES_ENTRY, type TablesOfBatches } from '../sql/batch-tables.ts';

/** For how long at least a batch is kept after its end, so that others may ask how it ended. */
const KEPT_MS = 3_600_000;

/**
 * Deletes ended batches above the id `after`, up to `until` (`undefined`: to the last): those whose members
 * have no results any more, and for which no live job has waited. Their waits go with them, and so do tallies
 * of batches that are gone. Returns how many batches.
 *
 * A job that has waited before it began may be redriven or forked, and asks again how they have ended: they
 * stay for as long as its result. What a flow counts stays until its last batch has ended.
 *
 * **Under concurrency.** What another worker is deleting it waits for, which takes a moment. A member that
 * was put back by itself may still change the counts of such a batch, but nothing can wait for it any more.
 */
export async function deleteLeftBatches(
  db: Runner,
  tables: TablesOfBatches,
  { after, until }: { readonly after: number; readonly until: number | undefined },
): Promise<number> {
  const query = deleteLeftBatchesQuery(tables, after, until);
  return (await queryRows(db, tables, query, { entry: BATCHES_ENTRY })).length;
}

export function deleteLeftBatchesQuery(
  tables: TablesOfBatches,
  after: number,
  until: number | undefined,
): SQL {
  const { queueJobs, queueResults, queueBatches, queueWaits, queueTallies } = tables;
  return sql`
    with left_over as materialized (
      select b.id from ${queueBatches} as b
      where b.id > ${after}::int8 and b.id <= coalesce(${until ?? null}::int8, b.id)
        and b.ended_at < statement_timestamp() - ${KEPT_MS} * interval '1 millisecond'
        and not exists (select from ${queueResults} as r where r.batch_id = b.id)
        and not exists (
          select from ${queueWaits} as i join ${queueJobs} as j on j.queue = i.queue and j.id = i.job_id
          where i.batch_id = b.id
        )
        and (
          select r.job_id from ${queueWaits} as i
          join ${queueResults} as r on r.queue = i.queue and r.job_id = i.job_id
          where i.batch_id = b.id and i.policy in ('run', 'cancel', 'forked') limit 1
        ) is null
        and (
          select o.id from ${queueBatches} as o where o.id = b.flow_id and o.ended_at is null limit 1
        ) is null
    ),
    waits as (
      delete from ${queueWaits} as w where w.batch_id in (select id from left_over)
    ),
    tallies as (
      delete from ${queueTallies} as t
      where not exists (select from ${queueBatches} as b where b.id = t.batch_id)
    )
    delete from ${queueBatches} as b where b.id in (select id from left_over)
    returning b.id`;
}
