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

/**
 * Jobs by their ids, and waits in lists: neither depends on how many rows Postgres expects.
 *
 * @crossesQueues the jobs that wait for a batch may be in any queue
 */
export function findUnwokenQuery(tables: TablesOfBatches, batchIds: readonly number[], after: number): SQL {
  const { queueJobs, queueBatches, queueWaits } = tables;
  return sql`
    with batches as materialized (
      select b.id, b.ended_at is not null as ended, b.waiting, ${isFailing(tables)} as failing
      from ${queueBatches} as b where b.id = any(${arrayText(batchIds)}::text::int8[])
    ),
    waits as materialized (
      select i.job_id, i.queue, i.policy, b.ended, b.waiting, b.failing from batches as b
      cross join lateral (
        select i.job_id, i.queue, i.policy from ${queueWaits} as i where i.batch_id = b.id offset 0
      ) as i
    )
    select j.queue, j.id from ${queueJobs} as j
    where j.id = any(array(select w.job_id from waits as w)) and j.id > ${after}::int8 and ${isParked}
      and case
        when j.blockers > 0 then (j.queue, j.id) in (
          select w.queue, w.job_id from waits as w
          where w.policy in ('run', 'cancel') and (w.ended or (w.failing and w.policy = 'cancel')))
        when (j.queue, j.id) in (
          select w.queue, w.job_id from waits as w
          where w.policy in ('parent', 'detached') and not w.ended and w.failing and w.waiting = 'failure'
        ) then true
        when (j.queue, j.id) in (
          select w.queue, w.job_id from waits as w where w.policy in ('parent', 'detached') and w.ended
        ) then -j.blockers > (
          select count(*) from ${queueWaits} as w join ${queueBatches} as o on o.id = w.batch_id
          where w.job_id = j.id and w.queue = j.queue and w.policy in ('parent', 'detached')
            and o.ended_at is null and o.waiting is not null
        ) end
    order by j.id limit ${CHUNK}::int4`;
}
