import { type SQL, sql } from 'drizzle-orm';
import { queryRows, type Runner } from '../../../core/sql/executor.ts';
import { arrayText } from '../../../core/sql/fence.ts';
import { notedGroups } from '../../../core/sql/grouped-jobs.ts';
import { lockPatience } from '../../../core/sql/row-locks.ts';
import { groupsIn } from '../../../core/sql/statement-context.ts';
import { BATCHES_ENTRY, type TablesOfBatches } from '../sql/batch-tables.ts';
import { isFailing } from '../sql/failing-batch.ts';
import { isParked } from '../sql/parked-job.ts';
import { FAILED_BEFORE } from './fold-tallies.ts';

export interface WakeWaiters {
  readonly queue: string;
  readonly ids: readonly number[];
  /** Where workers are notified; `undefined`: no notification is sent. */
  readonly channel: string | undefined;
}

/**
 * Makes jobs of one queue due that wait although what they wait for is over; returns how many. A fold does so
 * as it counts; this is for those whose rows it could not write.
 *
 * **Under concurrency.** It locks first batches, then jobs, as a fold does, and waits for none of them: what
 * is locked is left for the next look. It judges a batch by its row as it is after the lock, so one that a
 * redrive of the flow has reopened counts as open. What is noted of failures is read before the lock, so a
 * batch that has changed in between has no failure for this look.
 */
export async function wakeWaiters(db: Runner, tables: TablesOfBatches, wake: WakeWaiters): Promise<number> {
  const [row] = await queryRows(db, tables, wakeWaitersQuery(tables, wake), { entry: BATCHES_ENTRY });
  return Number(row?.woken ?? 0);
}

/**
 * A batch that is locked elsewhere counts as open, and as one without failures. Of those that a job has
 * enqueued, one that ended long ago says nothing: the job waits rightly while as many are open as it waits
 * for. Where waits side by side need different numbers, that finds it only when a further one has ended.
 * A failure is told once: a job that has caught it may go on to wait for other batches. What still waits for
 * the first failure says so again.
 *
 * Each locked batch is one of those that are waited for. So a full join brings what a left one would, and is
 * never a nested loop.
 */
export function wakeWaitersQuery(tables: TablesOfBatches, { queue, ids, channel }: WakeWaiters): SQL {
  const { queueJobs, queueBatches, queueWaits } = tables;
  const noted = groupsIn(tables, queue) === undefined ? sql`` : notedGroups(tables, 'woken');
  return sql`
    with waits as materialized (
      select w.batch_id, w.job_id, w.policy from ${queueWaits} as w
      where w.job_id = any(${arrayText(ids)}::text::int8[]) and w.queue = ${queue}
    ),
    seen as materialized (
      select b.id, b.xmin::text as version from ${queueBatches} as b
      where b.id = any(array(select batch_id from waits))
    ),
    locked as materialized (
      select b.id, b.ended_at is not null as ended,
        (b.id, b.xmin::text) in (select id, version from seen) and ${isFailing(tables)} as failing,
        b.waiting
      from ${queueBatches} as b${lockPatience(tables, 'skip')}
      where b.id = any(array(select id from seen))
      order by b.id for no key update of b skip locked
    ),
    judged as materialized (
      select w.job_id as id,
        bool_or(w.policy = 'cancel' and coalesce(l.failing, false)) as unwanted,
        bool_and(coalesce(l.ended, false)) filter (where w.policy in ('run', 'cancel')) as before,
        bool_or(coalesce(l.failing and not l.ended and l.waiting = 'failure', false)) as at_once,
        count(*) filter (
          where w.policy in ('parent', 'detached')
            and (l.id is null or (not l.ended and l.waiting is not null))
        ) as open
      from waits as w full join locked as l on l.id = w.batch_id
      group by w.job_id
    ),
    free as materialized (
      select j.id, j.unwanted from (select * from judged order by id) as i
      cross join lateral (
        select j.id, j.blockers > 0 and i.unwanted as unwanted from ${queueJobs} as j
        where j.queue = ${queue} and j.id = i.id and ${isParked}
          and case when j.blockers > 0 then i.unwanted or coalesce(i.before, true)
            else i.at_once or -j.blockers > i.open end
        for no key update skip locked
      ) as j
    ),
    woken as (
      update ${queueJobs} as j
      set blockers = 0, run_at = statement_timestamp(),
        cancel_reason = case when (j.id in (select id from free where unwanted)) is true
          then coalesce(j.cancel_reason, ${FAILED_BEFORE}) else j.cancel_reason end
      where j.queue = ${queue} and j.id = any(array(select id from free))
      returning j.queue, j.run_at, j.group_key
    ),
    told as (
      update ${queueBatches} as b set waiting = 'end'
      where b.id = any(array(
        select l.id from locked as l
        where l.failing and not l.ended and l.waiting = 'failure' and (l.id in (
          select w.batch_id from waits as w
          where w.policy in ('parent', 'detached') and (w.job_id in (select id from free)) is true
        )) is true
      ))
    )${noted}
    select (select count(*) from woken)::float8 as woken${
      channel === undefined
        ? sql``
        : sql`,
      (
        select count(pg_notify(${channel}::text, q.queue)) from (select distinct queue from woken) as q
      ) as told`
    }`;
}
