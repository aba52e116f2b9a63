import { type SQL, sql } from 'drizzle-orm';
import type { QueueTables } from '../../../core/schema/create-queue-tables.ts';
import { queryRows, type Runner } from '../../../core/sql/executor.ts';
import { arrayText } from '../../../core/sql/fence.ts';
import { notedGroups } from '../../../core/sql/grouped-jobs.ts';
import { planAnew } from '../../../core/sql/plan-anew.ts';
import { lockPatience, type RowLocks } from '../../../core/sql/row-locks.ts';
import { groupsInAny } from '../../../core/sql/statement-context.ts';
import { BATCHES_ENTRY, type TablesOfBatches } from '../sql/batch-tables.ts';

export interface Fold {
  /** Of these batches; `undefined`: of any. */
  readonly ids?: readonly number[] | undefined;
  /** Where the workers of the queues with new due jobs are notified; `undefined`: no notification is sent. */
  readonly channel: string | undefined;
  /** `wait` in a transaction that has nothing else to do, `briefly` elsewhere: see `lockPatience`. */
  readonly locks: Exclude<RowLocks, 'skip'>;
  /**
   * Whether it makes due what waited. Without that it counts alone, since the row of a job that waits refuses
   * the change: see `wakeWaiters`. @default true
   */
  readonly wakes?: boolean | undefined;
}

export interface Folded {
  readonly tallies: number;
  /** The queues in which jobs are due that waited. */
  readonly woken: readonly string[];
  /** Batches whose remaining members are to end. */
  readonly unwanted: readonly number[];
  /** Batches that another fold has locked or changed: it may not have seen all tallies. */
  readonly busy: readonly number[];
  /** Whether a fold of any batches has not seen all tallies: there may be other batches. */
  readonly isCut: boolean;
}

/** Why a job of a flow ends without having run. */
export const FAILED_BEFORE = 'A job that it waited for was discarded or cancelled';

/** The most tallies of a fold of any batches. */
const MOST = 10_000;

/**
 * Counts tallies, and makes due what waited for the batches that end by them, in one statement.
 *
 * **Under concurrency.** A batch that another fold has locked is left to it; the next fold takes what it did
 * not see. So is one that has changed since this statement began: a redrive of the flow may have reopened it
 * and put back the very members whose ends this one sees. It locks first batches, then the jobs that it makes
 * due, both in the order of their ids. A statement that ends a member holds rows of jobs and asks for no
 * batch, so no circle of waits can arise. With `wakes`, the end of a batch and the jobs that it makes due
 * commit together. A crash before that leaves the tallies to the next fold. A redrive of the flow opens a
 * batch again, which ends once more. Of one that has ended it still counts members that were put back one by
 * one, so that a redrive of the flow knows of them. Members that were added to a batch that is to end are
 * told by the fold that counts them: it reads the reason under the lock, so neither overlooks the other. A
 * waiting job's row is read as it is after the lock: `set` decides, not `where`, which would test the version
 * before it.
 */
export async function foldTallies(db: Runner, tables: TablesOfBatches, fold: Fold): Promise<Folded> {
  const [row] = await queryRows(db, tables, foldTalliesQuery(tables, fold), { entry: BATCHES_ENTRY });
  return {
    tallies: Number(row?.tallies ?? 0),
    woken: JSON.parse(String(row?.woken ?? '[]')),
    unwanted: JSON.parse(String(row?.unwanted ?? '[]')),
    busy: JSON.parse(String(row?.busy ?? '[]')),
    isCut: Number(row?.seen ?? 0) >= MOST,
  };
}

/**
 * A job that waits for no batch stays as it is: when its handler runs, it will see that the batch has ended.
 * So do those that are to end already: there may be many, and each further failure would write them again.
 * For the same reason only the first failure of a batch makes a handler run that waits for one. A later wait
 * is for one of members that were put back, whose first failure is counted with their return, or after it.
 *
 * The jobs are found by their keys alone, one by one, which needs a plan for tables of their present size.
 * With `= any(array(…))` beside it each of 10,000 jobs is looked for in an array of 10,000.
 */
export function foldTalliesQuery(tables: TablesOfBatches, { ids, channel, locks, wakes = true }: Fold): SQL {
  const { queueJobs, queueBatches, queueWaits, queueTallies } = tables;
  const found =
    ids === undefined
      ? sql`select t.batch_id, count(*) as seen from ${planAnew()} cross join (
        select batch_id from ${queueTallies} limit ${MOST}::int4
      ) as t group by t.batch_id`
      : sql`select t.batch_id from ${planAnew()}
      cross join unnest(${arrayText(ids)}::text::int8[]) as t(batch_id)`;
  return sql`
    with found as materialized (
      ${found}
    ),
    seen as materialized (
      select b.id, b.xmin::text as version from ${queueBatches} as b
      where b.id = any(array(select batch_id from found))
    ),
    held as materialized (
      select b.id, b.ended_at is null as open,
        (b.id, b.xmin::text) in (select id, version from seen) as is_as_seen
      from ${queueBatches} as b${lockPatience(tables, locks)}
      where b.id = any(array(select batch_id from found))
      order by b.id for no key update of b skip locked
    ),
    locked as materialized (select id, open from held where is_as_seen),
    taken as (
      delete from ${queueTallies} as t where t.batch_id = any(array(select id from locked))
      returning t.batch_id, t.added, t.ended, t.failed, t.cancel_reason
    ),
    sums as materialized (
      select t.batch_id as id, l.open, count(*) as tallies, sum(t.added) as added, sum(t.ended) as ended,
        sum(t.failed) as failed, bool_or(t.failed > 0) as has_failures,
        bool_or(t.failed < 0) as has_returns,
        min(t.cancel_reason) filter (where l.open) as cancel_reason
      from taken as t join locked as l on l.id = t.batch_id group by t.batch_id, l.open
    ),
    counted as (
      update ${queueBatches} as b
      set total = b.total + s.added, pending = b.pending + s.added - s.ended, failed = b.failed + s.failed,
        cancel_reason = coalesce(b.cancel_reason, s.cancel_reason),
        ended_at = case when b.pending + s.added - s.ended <= 0 or not s.open
          then coalesce(b.ended_at, statement_timestamp()) end
      from sums as s
      where b.id = any(array(select id from locked)) and b.id = s.id
      returning b.id, s.open and b.pending <= 0 as over,
        s.open and b.failed > 0 and (s.has_failures or b.pending <= 0) as failing,
        b.waiting = 'failure' and (s.has_returns or b.failed - s.failed <= 0) as tells_failure, b.waiting,
        b.pending > 0 and (
          s.cancel_reason is not null or (s.open and s.added > 0 and b.cancel_reason is not null)
        ) as unwanted
    ),
    targets as materialized (
      select w.job_id as id, w.queue,
        count(*) filter (where c.over and w.policy in ('run', 'cancel')) as before,
        count(*) filter (where c.over and w.policy not in ('run', 'cancel')) as beside,
        bool_or(c.failing and w.policy = 'cancel') as unwanted,
        bool_or(c.failing and (w.policy = 'cancel' or c.tells_failure is true)) as at_once
      from counted as c join ${queueWaits} as w on w.batch_id = c.id
      where case
        when w.policy = 'run' then c.over
        when w.policy = 'cancel' then c.over or c.failing
        when w.policy = 'forked' then false
        else (c.over and c.waiting is not null) or (c.failing and c.tells_failure) end${
          wakes ? sql`` : sql` and false`
        }
      group by w.job_id, w.queue
    ),
    live as materialized (
      select i.id, i.queue, i.before, i.beside, i.unwanted, i.at_once, statement_timestamp() as now
      from targets as i join ${queueJobs} as j on j.queue = i.queue and j.id = i.id
      where i.before + i.beside > 0 or not i.unwanted or j.cancel_reason is null
      order by j.id for no key update of j
    ),
    woken as (
      update ${queueJobs} as j
      set blockers = case when j.blockers > 0 then greatest(j.blockers - i.before, 0)
          when j.blockers < 0 then least(j.blockers + i.beside, 0) else j.blockers end::int4,
        cancel_reason = case when i.unwanted then coalesce(j.cancel_reason, ${FAILED_BEFORE})
          else j.cancel_reason end,
        run_at = case
          when coalesce(j.blockers, 0) = 0
            or not (i.at_once or j.blockers between -i.beside and i.before) then j.run_at
          when j.worker_id is null then least(j.run_at, i.now)
          else greatest(i.now, j.claimed_at + interval '1 microsecond') end
      from live as i
      where j.queue = i.queue and j.id = i.id
      returning j.queue, j.run_at, j.group_key, j.run_at <= i.now as due
    )${noted(tables)}
    select (select coalesce(sum(tallies), 0) from sums)::float8 as tallies,
      (select json_agg(c.id) from counted as c where c.unwanted)::text as unwanted,
      (
        select json_agg(b.id) from ${queueBatches} as b
        where b.id = any(array(select batch_id from found)) and b.id not in (select id from locked)
      )::text as busy,${
        ids === undefined
          ? sql`
      (select sum(seen) from found)::float8 as seen,`
          : sql``
      }
      json_agg(w.queue)::text as woken${
        channel === undefined
          ? sql``
          : sql`,
      count(pg_notify(${channel}::text, w.queue)) as told`
      }
    from (select distinct queue from woken where due) as w`;
}

function noted(tables: QueueTables): SQL {
  return groupsInAny(tables) === undefined ? sql`` : notedGroups(tables, 'woken');
}
