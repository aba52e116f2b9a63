import { type SQL, sql } from 'drizzle-orm';
import { queryRows, type Runner } from '../../../core/sql/executor.ts';
import { BATCHES_ENTRY, type TablesOfBatches } from '../sql/batch-tables.ts';

/** Above the id `after`, up to `until`; `undefined`: to the last. */
export interface BatchRange {
  readonly after: number;
  readonly until: number | undefined;
}

/** For how long at least a batch is kept after its end, so that others may ask how it ended. */
const KEPT_MS = 3_600_000;

/**
 * Finds ended batches whose members neither have results nor live again, and for which no live job has
 * waited. Returns their ids.
 *
 * A job that has waited before it began may be redriven or forked, and asks again how they have ended: they
 * stay for as long as its result. What a flow counts stays until its last batch has ended.
 *
 * **Under concurrency.** A plain read. A member is put back out of its result, in one commit: what is found
 * can have no members any more.
 */
export async function findLeftBatches(
  db: Runner,
  tables: TablesOfBatches,
  range: BatchRange,
): Promise<number[]> {
  const rows = await queryRows(db, tables, findLeftBatchesQuery(tables, range), { entry: BATCHES_ENTRY });
  return rows.map(({ id }) => Number(id));
}

/** @crossesQueues the members of a batch may be in any queue */
export function findLeftBatchesQuery(tables: TablesOfBatches, { after, until }: BatchRange): SQL {
  const { queueJobs, queueResults, queueBatches, queueWaits } = tables;
  return sql`
    select b.id from ${queueBatches} as b
    where b.id > ${after}::int8 and b.id <= coalesce(${until ?? null}::int8, b.id)
      and b.ended_at < statement_timestamp() - ${KEPT_MS} * interval '1 millisecond'
      and not exists (select from ${queueResults} as r where r.batch_id = b.id)
      and (select j.id from ${queueJobs} as j where j.batch_id = b.id limit 1) is null
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
      ) is null`;
}
