import { type SQL, sql } from 'drizzle-orm';
import { queryRows, type Runner } from '../../../core/sql/executor.ts';
import { arrayText } from '../../../core/sql/fence.ts';
import { BATCHES_ENTRY, type TablesOfBatches } from '../sql/batch-tables.ts';
import { CHUNK } from '../sql/chunk.ts';
import { isFailing } from '../sql/failing-batch.ts';
import { idsByQueue } from '../sql/ids-by-queue.ts';
import { isParked } from '../sql/parked-job.ts';

/**
 * The next {@link CHUNK} jobs that wait although what they wait for in one of these batches is over, with ids
 * above `after`, by their queues: a fold could not write their rows.
 *
 * **Under concurrency.** A plain read: `wakeWaiters` looks again, under locks.
 */
export async function findUnwoken(
  db: Runner,
  tables: TablesOfBatches,
  batchIds: readonly number[],
  after: number,
): Promise<Map<string, number[]>> {
  const query = findUnwokenQuery(tables, batchIds, after);
  return idsByQueue(await queryRows(db, tables, query, { entry: BATCHES_ENTRY }));
}

export function findUnwokenQuery(tables: TablesOfBatches, batchIds: readonly number[], after: number): SQL {
  const { queueJobs, queueBatches, queueWaits } = tables;
  return sql`
    with batches as materialized (
      select b.id, b.ended_at is not null as ended, b.waiting, ${isFailing(tables)} as failing
      from ${queueBatches} as b where b.id = any(${arrayText(batchIds)}::text::int8[])
    )
    select distinct j.queue, j.id
    from batches as b
    cross join lateral (
      select i.job_id, i.queue, i.policy from ${queueWaits} as i where i.batch_id = b.id offset 0
    ) as i
    cross join lateral (
      select j.queue, j.id, j.blockers from ${queueJobs} as j
      where j.queue = i.queue and j.id = i.job_id and j.id > ${after}::int8 and ${isParked}
      offset 0
    ) as j
    where case
        when j.blockers > 0 then i.policy in ('run', 'cancel')
          and (b.ended or (b.failing and i.policy = 'cancel'))
        when i.policy not in ('parent', 'detached') then false
        when not b.ended then b.failing and b.waiting = 'failure'
        else -j.blockers > (
          select count(*) from ${queueWaits} as w join ${queueBatches} as o on o.id = w.batch_id
          where w.job_id = j.id and w.queue = j.queue and w.policy in ('parent', 'detached')
            and o.ended_at is null and o.waiting is not null
        ) end
    order by j.id limit ${CHUNK}::int4`;
}
