import { type SQL, sql } from 'drizzle-orm';
import { THROTTLED } from '../../../core/job/key-rule.ts';
import type { NewJob } from '../../../core/job/new-job.ts';
import { givenColumns, woke } from '../../../core/queries/enqueue/insert-jobs.ts';
import type { QueueTables } from '../../../core/schema/create-queue-tables.ts';
import { ownColumnsOf } from '../../../core/schema/own-columns.ts';
import { type Executor, queryRows } from '../../../core/sql/executor.ts';
import { anyInGroup, haveCosts, haveGroupColumns, notedGroups } from '../../../core/sql/grouped-jobs.ts';
import { jobRows } from '../../../core/sql/job-rows.ts';
import { queueOf } from '../../../core/sql/one-queue.ts';
import { ownDefault } from '../../../core/sql/own-values.ts';
import type { WakeUp } from '../../../core/sql/wake-up.ts';
import { CONTROL_ENTRY } from '../../control/control-entry.ts';
import { isOver, type KeyTables, nextEnd, windowOf, withKeys } from './insert-limited-jobs.ts';
import { idSequence, type PutResult, putNumbered, putResult, takingOver } from './insert-waiting-jobs.ts';

/**
 * Inserts jobs, each with another key, so that no two of a key are due within one window. A job that waits
 * with the key becomes the new one. Otherwise this is due when the window of the last one is over, and takes
 * the next: the row of the key says until when there are jobs. Leaves out those for which something changed
 * while it waited for that row; they are to be sent again.
 *
 * **Under concurrency.** All these statements lock the row of the key first. One takes a window only if the
 * row is still as its snapshot shows it: since each window that is taken changes the row, no other job of the
 * key has come in between, and none is counted twice. One that replaces a job which a claim is just taking
 * waits for the claim, and then changes nothing. Keys go in sorted order, so two bulk statements never
 * deadlock. A call waits for another open transaction with the key.
 */
export async function insertTrailingJobs(
  db: Executor,
  { tables, keys }: KeyTables,
  windowMs: number,
  jobs: readonly NewJob[],
  wakeUp?: WakeUp,
): Promise<PutResult> {
  const query = insertTrailingJobsQuery({ tables, keys }, windowMs, jobs, wakeUp);
  const rows = await queryRows(db, withKeys(tables, keys), query, { entry: CONTROL_ENTRY });
  return putResult(jobs, rows);
}

/** @insteadOnCitus an error */
export function insertTrailingJobsQuery(
  { tables, keys }: KeyTables,
  windowMs: number,
  jobs: readonly NewJob[],
  wakeUp?: WakeUp,
): SQL {
  const { queueJobs } = tables;
  const grouped = anyInGroup(jobs);
  const noted = grouped
    ? sql`,
    changed as (
      select queue, run_at, group_key from put union all select queue, run_at, group_key from replaced
    )${notedGroups(tables, 'changed')}`
    : sql``;
  const woken = wakeUp === undefined ? sql`null as woke` : woke(jobs, wakeUp);
  // Of an inner join by three columns the planner expects one row, and then compares all jobs with all.
  return sql`
    with wanted as materialized (
      select i.*, ${THROTTLED}::text || i.rule_key as waiting_key
      from (${jobRows(jobs, givenColumns(queueJobs, jobs))}) as i
    ),
    slots as (
      insert into ${keys} as k (queue, kind, key, until)
      select w.queue, w.kind, w.rule_key,
        greatest(w.run_at, statement_timestamp()) + ${windowOf(windowMs)}
      from wanted as w order by w.queue, w.kind, w.rule_key
      on conflict (queue, kind, key) do update set until = case
        when ${isOver(windowMs)} then excluded.until else ${nextEnd(windowMs)} at time zone 'UTC' end
      where k.until = (
          select s.until from ${keys} as s
          where s.queue = excluded.queue and s.kind = excluded.kind and s.key = excluded.key)
        and not exists (
          select from ${queueJobs} as j
          where j.queue = ${queueOf(jobs, 'excluded.queue')} and j.kind = excluded.kind
            and j.waiting_key = ${THROTTLED}::text || excluded.key)
      returning k.queue, k.kind, k.key, k.until
    ),
    placed as materialized (
      select w.*, t.until from wanted as w
      left join slots as t on t.queue = w.queue and t.kind = w.kind and t.key = w.rule_key
    ),
    numbered as materialized (
      select nextval(s.sequence) as id, o.*
      from ${idSequence(tables)} as s, (
        select w.*, greatest(w.run_at, w.until - ${windowOf(windowMs)}) as due_at
        from placed as w where w.until is not null order by w.place) as o
    )${putNumbered(tables, jobs, takingOver(tables, jobs, undefined), 'due_at', 'waiting_key')},
    replaced as (
      update ${queueJobs} as j set ${replacing(tables, jobs)}
      from placed as w
      where j.queue = ${queueOf(jobs, 'w.queue')} and j.kind = w.kind and j.waiting_key = w.waiting_key
        and j.queue = w.queue and w.until is null
      returning j.id, w.place, j.queue, j.run_at${grouped ? sql`, j.group_key` : sql``}
    )${noted}
    select n.place, i.id, i.id = n.id as is_new, ${woken}
    from put as i
    join numbered as n on n.queue = i.queue and n.kind = i.kind and n.waiting_key = i.waiting_key
    union all
    select i.place, i.id, false, ${woken} from replaced as i`;
}

/** As `takingOver`, with the rows `w`. */
function replacing(tables: QueueTables, jobs: readonly NewJob[]): SQL {
  const names = ['payload', 'priority', 'max_attempts', 'metadata'];
  if (haveGroupColumns(jobs)) names.push('group_key', 'weight');
  const given = new Set(givenColumns(tables.queueJobs, jobs).map(({ index }) => index));
  const own = ownColumnsOf(tables.queueJobs).map((column, index) => {
    const value = given.has(index) ? sql.raw(`w.own_${index}`) : ownDefault(column);
    return sql`, ${sql.raw(column.name)} = ${value}`;
  });
  const costs = !haveGroupColumns(jobs) && haveCosts(tables) ? sql`, weight = null` : sql``;
  const taken = sql.raw(names.map((name) => `${name} = w.${name}`).join(', '));
  return sql`fence = j.fence + 1, ${taken}${costs}${sql.join(own)}`;
}
