import { type SQL, sql } from 'drizzle-orm';
import type { NewJob } from '../../../core/job/new-job.ts';
import { COLUMNS, givenColumns, ownValues, woke } from '../../../core/queries/enqueue/insert-jobs.ts';
import type { QueueTables } from '../../../core/schema/create-queue-tables.ts';
import { type Executor, queryRows } from '../../../core/sql/executor.ts';
import { anyInGroup, groupColumns, haveGroupColumns, notedGroups } from '../../../core/sql/grouped-jobs.ts';
import { jobRows } from '../../../core/sql/job-rows.ts';
import { ownNames } from '../../../core/sql/own-values.ts';
import type { WakeUp } from '../../../core/sql/wake-up.ts';
import { CONTROL_ENTRY } from '../../control/control-entry.ts';
import type { ControlTables } from '../../control/index.ts';
import { idSequence, type PutResult, putResult } from './insert-waiting-jobs.ts';

export interface KeyTables {
  readonly tables: QueueTables;
  readonly keys: ControlTables['queueKeys'];
}

/** All of them, for the names that an error may say. */
export function withKeys(tables: QueueTables, queueKeys: KeyTables['keys']): QueueTables {
  const all: QueueTables & Pick<ControlTables, 'queueKeys'> = { ...tables, queueKeys };
  return all;
}

/**
 * Inserts the jobs whose key is free and takes the keys for a time, in one statement. Each job has a
 * different key.
 *
 * **Under concurrency.** The row of the key decides: the call that writes it has the window, so only one of
 * any number of calls gets it. It waits for another open transaction that has just taken the key, and then
 * uses the row as that transaction left it; if that one rolls back, the key is as free as before. A call that
 * is refused by a key that was taken before locks nothing and waits for no other transaction. Keys go in
 * sorted order, so two bulk statements never deadlock.
 */
export async function insertLimitedJobs(
  db: Executor,
  { tables, keys }: KeyTables,
  windowMs: number,
  jobs: readonly NewJob[],
  wakeUp?: WakeUp,
): Promise<PutResult> {
  const query = insertLimitedJobsQuery({ tables, keys }, windowMs, jobs, wakeUp);
  const rows = await queryRows(db, withKeys(tables, keys), query, { entry: CONTROL_ENTRY });
  return putResult(jobs, rows);
}

/** @insteadOnCitus (of groups, waking) insertLimitedJobsQuery */
export function insertLimitedJobsQuery(
  { tables, keys }: KeyTables,
  windowMs: number,
  jobs: readonly NewJob[],
  wakeUp?: WakeUp,
): SQL {
  const { queueJobs } = tables;
  const own = givenColumns(queueJobs, jobs);
  const grouped = anyInGroup(jobs);
  const columns = sql`${sql.raw(COLUMNS)}${groupColumns(haveGroupColumns(jobs))}`;
  // `is true` keeps the `in` a hashed subplan: of a join by three columns the planner expects one row, and
  // then compares all inserted jobs with all accepted ones.
  return sql`
    with wanted as materialized (
      select * from (${jobRows(jobs, own)}) as i
    ),
    taken as (
      insert into ${keys} as k (queue, kind, key, until)
      select w.queue, w.kind, w.rule_key, statement_timestamp() + ${windowOf(windowMs)}
      from wanted as w
      where ${isFree(keys, jobs)}
      order by w.queue, w.kind, w.rule_key
      on conflict (queue, kind, key) do update set until = excluded.until
      where ${isOver(windowMs)}
      returning k.queue, k.kind, k.key
    ),
    accepted as materialized (
      select nextval(s.sequence) as id, o.*
      from ${idSequence(tables)} as s, (
        select w.* from wanted as w
        where ((w.queue, w.kind, w.rule_key) in (select queue, kind, key from taken)) is true
        order by w.place) as o
    ),
    inserted as (
      insert into ${queueJobs} (id, ${columns}${ownNames(own)}) overriding system value
      select id, ${columns}${ownValues(own)} from accepted order by place
      returning id, queue, run_at${grouped ? sql`, group_key` : sql``}
    )${grouped ? notedGroups(tables, 'inserted') : sql``}
    select a.place, i.id, true as is_new, ${wakeUp === undefined ? sql`null as woke` : woke(jobs, wakeUp)}
    from inserted as i join accepted as a on a.id = i.id`;
}

/**
 * Whether no window of the key of `w` is open. For jobs of one queue its name is a constant: Citus takes no
 * subquery about another row.
 */
function isFree(keys: KeyTables['keys'], jobs: readonly NewJob[]): SQL {
  const open = sql`k.until > statement_timestamp()`;
  const [{ queue } = { queue: '' }] = jobs;
  if (jobs.some((job) => job.queue !== queue)) {
    return sql`not exists (
        select from ${keys} as k
        where k.queue = w.queue and k.kind = w.kind and k.key = w.rule_key and ${open})`;
  }
  return sql`(w.kind, w.rule_key) not in (
        select k.kind, k.key from ${keys} as k
        where k.queue = ${queue} and k.kind = ${anyOf(jobs.map(({ kind }) => kind))}
          and k.key = ${anyOf(jobs.map(({ rule }) => rule?.key ?? ''))} and ${open})`;
}

/** What equals one of the values. */
function anyOf(values: readonly string[]): SQL {
  const distinct = [...new Set(values)];
  if (distinct.length === 1) return sql`${distinct[0]}`;
  return sql`any(array(select jsonb_array_elements_text(${JSON.stringify(distinct)}::text::jsonb)))`;
}

/** A number of milliseconds as an interval. */
export function windowOf(windowMs: number): SQL {
  return sql`${windowMs}::float8 * interval '1 millisecond'`;
}

/** The end of the window after that of `k`, without a zone: Citus takes immutable functions only. */
export function nextEnd(windowMs: number): SQL {
  return sql`(k.until at time zone 'UTC' + ${windowOf(windowMs)})`;
}

/** Whether the window of `k` is over at the time that is a window before `excluded.until`. */
export function isOver(windowMs: number): SQL {
  return sql`${nextEnd(windowMs)} <= excluded.until at time zone 'UTC'`;
}
