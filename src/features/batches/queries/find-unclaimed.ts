import { type SQL, sql } from 'drizzle-orm';
import { queryRows, type Runner } from '../../../core/sql/executor.ts';
import { arrayText } from '../../../core/sql/fence.ts';
import { BATCHES_ENTRY, type TablesOfBatches } from '../sql/batch-tables.ts';
import { CHUNK } from '../sql/chunk.ts';
import { idsByQueue } from '../sql/ids-by-queue.ts';

/** For how long a job that is to end may wait for the claim that ends it. */
const PATIENCE_MS = 10_000;

/**
 * The next {@link CHUNK} jobs that were asked to end with these batches, and that no claim has taken since,
 * with ids above `after`, by their queues: their queue is paused, their group stands still, or no worker has
 * a handler for their kind. One that is not due was set aside, since the database refuses its claim, or was
 * put back by a worker that has died before it could end it.
 *
 * **Under concurrency.** A plain read: `endUnclaimed` looks again, under locks.
 *
 * @param unwanted those of the batches whose members are to end
 */
export async function findUnclaimed(
  db: Runner,
  tables: TablesOfBatches,
  batchIds: readonly number[],
  unwanted: readonly number[],
  after: number,
): Promise<Map<string, number[]>> {
  const query = findUnclaimedQuery(tables, batchIds, unwanted, after);
  return idsByQueue(await queryRows(db, tables, query, { entry: BATCHES_ENTRY }));
}

/** @crossesQueues finds members and waiting jobs of batches, which may be in any queue */
export function findUnclaimedQuery(
  { queueJobs, queueWaits }: TablesOfBatches,
  batchIds: readonly number[],
  unwanted: readonly number[],
  after: number,
): SQL {
  const isUnclaimed = sql`j.worker_id is null and j.cancel_reason is not null and j.id > ${after}::int8
          and (j.run_at < statement_timestamp() - ${PATIENCE_MS} * interval '1 millisecond'
            or j.run_at > statement_timestamp())`;
  return sql`
    select u.queue, u.id from (
      (
        select j.queue, j.id from ${queueJobs} as j
        where j.batch_id = any(${arrayText(unwanted)}::text::int8[]) and ${isUnclaimed}
        order by j.id limit ${CHUNK}::int4
      )
      union
      (
        select j.queue, j.id from ${queueWaits} as i
        join ${queueJobs} as j on j.queue = i.queue and j.id = i.job_id
        where i.batch_id = any(${arrayText(batchIds)}::text::int8[]) and i.policy = 'cancel'
          and ${isUnclaimed}
        order by j.id limit ${CHUNK}::int4
      )
    ) as u order by u.id limit ${CHUNK}::int4`;
}
