import { type SQL, sql } from 'drizzle-orm';
import { MAX_PRIORITY } from '../job/limits.ts';
import type { QueueTables } from '../schema/create-queue-tables.ts';
import { isFree } from './group-hold.ts';

/** So many jobs that may not be claimed now are passed before each priority is asked by itself. */
const PASSED = 100;

export interface DueInGroup {
  readonly queue: string;
  /** The group's key, as SQL. */
  readonly group: SQL;
  /** The most jobs, as SQL. */
  readonly most: SQL;
  /** What else is asked of the jobs `j`. */
  readonly and?: SQL | undefined;
}

/**
 * A select of the `id` of the next due jobs of a group, in their order, and where each row stands (`at`).
 * They are at the head of the index of groups, unless many jobs are held or scheduled: then each priority is
 * asked by itself. It may bring fewer than there are, but none only when there are none. The head is read
 * once, and no further than it is asked for.
 */
export function dueInGroup(
  tables: QueueTables,
  { queue, group, most, and: condition = sql`true` }: DueInGroup,
): SQL {
  const { queueJobs } = tables;
  const inGroup = sql`j.queue = ${queue} and j.group_key = ${group} and j.group_key is not null`;
  const due = sql`j.run_at <= statement_timestamp() and ${isFree(tables)} and ${condition}`;
  const order = sql`order by j.priority, j.run_at, j.id`;
  const passed = sql.raw(String(PASSED));
  return sql`
            with head as materialized (
              select j.id, j.ctid as at, ${due} as due from ${queueJobs} as j
              where ${inGroup} ${order} limit ${most} + ${passed}
            )
            select h.id, h.at from head as h where h.due
            union all
            select j.id, j.at from generate_series(0, ${sql.raw(String(MAX_PRIORITY))}) as band(priority)
            cross join lateral (
              select j.id, j.ctid as at from ${queueJobs} as j
              where ${inGroup} and j.priority = band.priority::int2 and ${due}
              order by j.run_at, j.id limit ${most}
            ) as j
            where (select count(*) >= ${most} + ${passed} and not bool_or(h.due) from head as h)
            limit ${most}`;
}
