import { type SQL, sql } from 'drizzle-orm';
import type { QueueTables } from '../../../core/schema/create-queue-tables.ts';
import { isFree } from '../../../core/sql/is-free.ts';
import type { Value } from '../../../core/sql/kept-statement.ts';
import { BANDS, isOfGroup } from './group-rows.ts';

/** So many jobs that may not be claimed now are passed before each priority is asked by itself. */
const PASSED = 100;
/** Fewer than so many at the head of a group with a long backlog are too few for a claim. */
const FEW = 16;

const ORDER = sql`order by j.priority, j.run_at, j.id`;

export interface DueInGroup {
  readonly queue: Value<string>;
  /** The group's key, as SQL. */
  readonly group: SQL;
  /** The most jobs, as SQL. */
  readonly most: SQL;
  /** What else is asked of a job `j`. @default undefined nothing */
  readonly and?: SQL | undefined;
}

/**
 * A select of the `id` of the next due jobs of a group, in their order, and where each row stands (`at`).
 * They are at the head of the index of groups, unless many jobs there are held, scheduled or not asked for:
 * then each priority is asked by itself. It may bring fewer than there are, but none only when there are
 * none. The head is read once, and no further than it is asked for.
 */
export function dueInGroup(tables: QueueTables, { queue, group, most, and: more }: DueInGroup): SQL {
  const { queueJobs } = tables;
  const inGroup = isOfGroup(queue, group);
  const also = more === undefined ? sql`` : sql` and ${more}`;
  const due = sql`j.run_at <= statement_timestamp() and ${isFree(tables)}${also}`;
  const passed = sql.raw(String(PASSED));
  const few = sql.raw(String(FEW));
  return sql`
            with head as materialized (
              select j.id, j.ctid as at, ${due} as due from ${queueJobs} as j
              where ${inGroup} ${ORDER} limit ${most} + ${passed}
            )
            select h.id, h.at from head as h where h.due
            union all
            select j.id, j.at from ${BANDS}
            cross join lateral (
              select j.id, j.ctid as at from ${queueJobs} as j
              where ${inGroup} and j.priority = band.priority::int2 and ${due}
              order by j.run_at, j.id limit ${most} + ${few}
            ) as j
            where (
              select count(*) >= ${most} + ${passed} and count(*) filter (where h.due) < ${few} from head as h
            ) and j.id not in (select h.id from head as h where h.due)
            limit ${most}`;
}

export interface NextInGroup extends Omit<DueInGroup, 'most' | 'and'> {
  /** What is asked of a job `j` that is due now. */
  readonly and: SQL;
}

/**
 * An expression: `-infinity` where a job of the group is due, otherwise when the next one will be, as far as
 * that is known, and `infinity` where none is scheduled. It reads what {@link dueInGroup} does.
 */
export function nextInGroup(tables: QueueTables, { queue, group, and: condition }: NextInGroup): SQL {
  const { queueJobs } = tables;
  const inGroup = isOfGroup(queue, group);
  const due = sql`j.run_at <= statement_timestamp() and ${isFree(tables)} and ${condition}`;
  const passed = sql.raw(String(PASSED));
  return sql`coalesce((
            with head as materialized (
              select j.run_at, ${due} as due from ${queueJobs} as j
              where ${inGroup} ${ORDER} limit ${passed}
            )
            select case
              when bool_or(h.due) then '-infinity'
              when count(*) < ${passed} then min(h.run_at) filter (where h.run_at > statement_timestamp())
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
