import { type SQL, sql } from 'drizzle-orm';
import { type Executor, queryRows } from '../../../core/sql/executor.ts';
import { arrayText } from '../../../core/sql/fence.ts';
import { BATCHES_ENTRY, type TablesOfBatches } from '../sql/batch-tables.ts';
import { FAILED_BEFORE } from './fold-tallies.ts';

export interface ParkWaiters {
  readonly flowId: number;
  /** Jobs that were just put back, or were to end while they waited: what had begun before does not count. */
  readonly unbegun: readonly number[];
  /** Whether the handler of a job `j` that no worker holds has been called. */
  readonly hasBegun: SQL;
}

/**
 * Lets the jobs of a flow wait again for its open batches; returns how many wait.
 *
 * **Under concurrency.** Sent in the transaction that has locked the batches, so no fold comes in between. It
 * locks jobs after them, in the order of their ids. A job that has begun goes on: a worker holds it, or it
 * waits for a time, a signal, other jobs or its next attempt. One that waits already keeps the time of its
 * deadline. One that a failure was to end, and that no worker has ended yet, waits again like the others. One
 * that was claimed although it waits is just being put back: it then waits for all that are open now.
 */
export async function parkWaiters(tx: Executor, tables: TablesOfBatches, park: ParkWaiters): Promise<number> {
  const query = parkWaitersQuery(tables, park);
  return (await queryRows(tx, tables, query, { entry: BATCHES_ENTRY })).length;
}

export function parkWaitersQuery(
  { queueJobs, queueBatches, queueWaits }: TablesOfBatches,
  { flowId, unbegun, hasBegun }: ParkWaiters,
): SQL {
  return sql`
    with waits as materialized (
      select w.job_id as id, w.queue, count(*) as open from ${queueBatches} as b
      join ${queueWaits} as w on w.batch_id = b.id
      where b.flow_id = ${flowId}::int8 and b.ended_at is null and w.policy in ('run', 'cancel')
      group by w.job_id, w.queue
    ),
    live as materialized (
      select i.id, i.queue, i.open, coalesce(j.blockers, 0) = 0 or j.cancel_reason is not null as anew,
        j.worker_id is null and coalesce(j.cancel_reason = ${FAILED_BEFORE}, true)
          and (
            j.id in (select unnest(${arrayText(unbegun)}::text::int8[])) or j.blockers > 0
            or (j.run_at <= statement_timestamp() and not ${hasBegun})
          ) as parks,
        j.worker_id is not null and j.blockers > 0 as held
      from waits as i join ${queueJobs} as j on j.queue = i.queue and j.id = i.id
      order by j.id for no key update of j
    )
    update ${queueJobs} as j
    set blockers = i.open::int4, cancel_reason = case when i.held then j.cancel_reason end,
      run_at = case when i.anew and i.parks then 'infinity' else j.run_at end
    from live as i where j.queue = i.queue and j.id = i.id and (i.parks or i.held)
    returning j.id`;
}
