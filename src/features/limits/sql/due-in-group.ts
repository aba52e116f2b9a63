import { type SQL, sql } from 'drizzle-orm';
import type { QueueTables } from '../../../core/schema/create-queue-tables.ts';
import { isFree } from '../../../core/sql/is-free.ts';
import type { Value } from '../../../core/sql/kept-statement.ts';
import { BANDS, isOfGroup } from './group-rows.ts';

/** So many jobs that may not be claimed now are passed before each priority is asked by itself. */
const PASSED = sql.raw('100');
/** Fewer than so many at the head of a group with a long backlog are too few for a claim. */
const FEW = sql.raw('16');

const ORDER = sql`order by j.priority, j.run_at, j.id`;

export interface JobsInGroup {
  readonly queue: Value<string>;
  /** The group's key, as SQL. */
  readonly group: SQL;
  /** What else is asked of a job `j`. @default undefined nothing */
  readonly and?: SQL | undefined;
}

/**
 * A select of the `id` of the next due jobs of a group, in their order, and where each row stands (`at`).
 * They are at the head of the index of groups, unless many jobs there are held, scheduled or not asked for:
 * then each priority is asked by itself. It may bring fewer than there are, but none only when there are
 * none. The head is read no further than it is asked for, and again only where it has fewer than that.
 *
 * @param most the most jobs, as SQL
 */
export function dueInGroup(tables: QueueTables, jobs: JobsInGroup, most: SQL): SQL {
  const { queueJobs } = tables;
  const inGroup = isOfGroup(jobs.queue, jobs.group);
  const due = isDue(tables, jobs.and);
  const read = sql`${most} + ${PASSED}`;
  const head = sql`(
              select j.id, j.ctid as at, ${due} as due from ${queueJobs} as j
              where ${inGroup} ${ORDER} limit ${read}
            ) as h`;
  return sql`
            select h.id, h.at from ${head} where h.due
            union all
            select j.id, j.at from ${BANDS}
            cross join lateral (
              select j.id, j.ctid as at from ${queueJobs} as j
              where ${inGroup} and j.priority = band.priority::int2 and ${due}
              order by j.run_at, j.id limit ${most} + ${FEW}
            ) as j
            where (
              select count(*) >= ${read} and count(*) filter (where h.due) < ${FEW} from ${head}
            ) and j.id not in (select h.id from ${head} where h.due)
            limit ${most}`;
}

/** A condition: whether a job of the group is due. It reads what {@link dueInGroup} does. */
export function isDueInGroup(tables: QueueTables, jobs: JobsInGroup): SQL {
  const { queueJobs } = tables;
  const inGroup = isOfGroup(jobs.queue, jobs.group);
  const due = isDue(tables, jobs.and);
  return sql`(
          exists (
            select from (
              select ${due} as due from ${queueJobs} as j where ${inGroup} ${ORDER} limit ${PASSED}
            ) as h
            where h.due
          ) or (
            (select count(*) from (
              select from ${queueJobs} as j where ${inGroup} ${ORDER} limit ${PASSED}
            ) as h) >= ${PASSED}
            and exists (
              select from ${BANDS} cross join lateral (
                select from ${queueJobs} as j
                where ${inGroup} and j.priority = band.priority::int2 and ${due}
                order by j.run_at, j.id limit 1
              ) as j
            )
          )
        )`;
}

export interface GroupToTry extends Omit<JobsInGroup, 'and'> {
  /** Which jobs `j` the claim is for. */
  readonly isTaken: SQL;
  /** Whether the group keeps an order: then its first due job has to be one of these. */
  readonly serial: boolean;
}

/** A condition: whether a claim may find jobs in the group. */
export function hasJobsFor(tables: QueueTables, { isTaken, serial, ...group }: GroupToTry): SQL {
  if (!serial) return isDueInGroup(tables, { ...group, and: isTaken });
  return sql`exists (
              select from (${dueInGroup(tables, group, sql`1`)}) as k
              join ${tables.queueJobs} as j on j.ctid = k.at and j.queue = ${group.queue} and j.id = k.id
              where ${isTaken}
            )`;
}

/**
 * An expression: `-infinity` where a job of the group is due, otherwise when the next one will be, as far as
 * that is known, and `infinity` where none is scheduled. It reads what {@link dueInGroup} does.
 */
export function nextInGroup(tables: QueueTables, jobs: JobsInGroup): SQL {
  const { queueJobs } = tables;
  const inGroup = isOfGroup(jobs.queue, jobs.group);
  const due = isDue(tables, jobs.and);
  return sql`coalesce((
            with head as materialized (
              select j.run_at, ${due} as due from ${queueJobs} as j
              where ${inGroup} ${ORDER} limit ${PASSED}
            )
            select case
              when bool_or(h.due) then '-infinity'
              when count(*) < ${PASSED} then min(h.run_at) filter (where h.run_at > statement_timestamp())
              else (
                select min(j.run_at) from ${BANDS}
                cross join lateral (
                  (select '-infinity'::timestamptz as run_at from ${queueJobs} as j
                    where ${inGroup} and j.priority = band.priority::int2 and ${due}
                    order by j.run_at, j.id limit 1)
                  union all
                  (select j.run_at from ${queueJobs} as j
                    where ${inGroup} and j.priority = band.priority::int2
                      and j.run_at > statement_timestamp()
                    order by j.run_at, j.id limit 1)
                ) as j
              )
            end from head as h
          ), 'infinity')`;
}

/** Whether the job `j` may be claimed now. */
export function isDue(tables: QueueTables, and?: SQL): SQL {
  const also = and === undefined ? sql`` : sql` and ${and}`;
  return sql`j.run_at <= statement_timestamp() and ${isFree(tables)}${also}`;
}
