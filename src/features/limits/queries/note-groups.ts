import { type SQL, sql } from 'drizzle-orm';
import type { Runner } from '../../../core/sql/executor.ts';
import { isFree } from '../../../core/sql/is-free.ts';
import { throughIndex } from '../../../core/sql/through-index.ts';
import { isDueInGroup } from '../sql/due-in-group.ts';
import { isUpheld } from '../sql/group-rows.ts';
import { type GroupTables, queryLimitRows } from '../sql/limit-tables.ts';
import { insertNotes } from '../sql/note-groups.ts';

/**
 * Notes the groups of one queue whose jobs were held by workers that are gone, or whose slots were kept there
 * by handlers that had ended their own jobs. The same for those that wait for the next attempt of a job that
 * is gone: its end did not see that hold, which was written at the same moment, or its row was deleted by
 * hand. No other statement tells claims about these groups. Returns how many it noted. It reads the rows of
 * all groups.
 *
 * **Under concurrency.** It inserts notes, and deletes holds of jobs that are gone; what another statement
 * has locked stays. So any number of workers may do it for the same groups.
 */
export async function noteFreedGroups(db: Runner, tables: GroupTables, queue: string): Promise<number> {
  const query = noteFreedGroupsQuery(tables, queue);
  const [row] = await queryLimitRows(db, tables, query);
  return Number(row?.noted);
}

/**
 * `OFFSET 0` keeps the jobs from being joined, and so does a subselect that returns a value: the job of each
 * hold is looked up, however many there are.
 *
 * @insteadOnCitus an error
 */
export function noteFreedGroupsQuery(tables: GroupTables, queue: string): SQL {
  const { queueJobs, queueGroups, queueHolds } = tables;
  return sql`
    with stale as materialized (
      select h.ctid as at from ${queueHolds} as h
      where h.queue = ${queue} and h.worker_id is null and h.until < 'infinity' and (
        select j.id from ${queueJobs} as j where j.queue = ${queue} and j.id = h.job_id
      ) is null
      for update of h skip locked
    ),
    removed as (
      delete from ${queueHolds} as h
      where h.queue = ${queue} and h.ctid = any(array(select at from stale))
      returning h.group_key
    ),
    noted as (${insertNotes(
      tables,
      sql`
        select ${queue}::text as queue, statement_timestamp() as due_at, r.group_key from removed as r
        union
        select ${queue}::text, statement_timestamp(), g.group_key
        from ${queueGroups} as g cross join unnest(g.held) as h(job_id)
        cross join lateral (
          select from ${queueJobs} as j
          where j.queue = ${queue} and j.id = h.job_id and j.worker_id is not null and ${isFree(tables)}
          offset 0
        ) as j
        where g.queue = ${queue}
        union
        select ${queue}::text, statement_timestamp(), h.group_key from ${queueHolds} as h
        where h.queue = ${queue} and not ${isUpheld(tables)}`,
    )}
      returning cardinality(group_keys) as groups
    )
    select coalesce(sum(groups), 0)::float8 as noted from noted`;
}

/** How many groups one statement looks at. */
const SLICE = 1_000;

/**
 * Of the next groups of one queue, notes those that claims overlook although they have a due job. That
 * happens when rows were inserted or changed without a note: by hand, or by a process that declares no
 * limits. Returns the last group that it looked at, and `undefined` at the end.
 *
 * **Under concurrency.** As {@link noteFreedGroups}. A group at its limit is noted needlessly, and parked
 * again.
 */
export async function noteForgottenGroups(
  db: Runner,
  tables: GroupTables,
  queue: string,
  after: string,
): Promise<string | undefined> {
  const query = noteForgottenGroupsQuery(tables, queue, after);
  const [row] = await queryLimitRows(db, tables, query);
  return Number(row?.looked) < SLICE ? undefined : String(row?.last);
}

/**
 * It goes from group to group in the index of the jobs: one that was never noted is in no other table. The
 * row of each is looked up. A join would compare all with all, where few rows are expected.
 *
 * @insteadOnCitus an error
 */
export function noteForgottenGroupsQuery(tables: GroupTables, queue: string, after: string): SQL {
  const { queueJobs, queueGroups } = tables;
  const next = (group: SQL) => sql`
        select j.group_key from ${queueJobs} as j
        where j.queue = ${queue} and j.group_key > ${group} and ${throughIndex(sql`j.group_key is not null`)}
        order by j.group_key limit 1`;
  return sql`
    with recursive looked as (
      select f.group_key, 1 as n from (${next(sql`${after}`)}
      ) as f
      union all
      select f.group_key, l.n + 1 from looked as l cross join lateral (${next(sql`l.group_key`)}
      ) as f
      where l.n < ${SLICE}::int4
    ),
    noted as (${insertNotes(
      tables,
      sql`
        select ${queue}::text as queue, statement_timestamp() as due_at, l.group_key from looked as l
        where coalesce((
          select g.ready_at from ${queueGroups} as g
          where g.queue = ${queue} and g.group_key = l.group_key
        ), 'infinity') > statement_timestamp()
          and ${isDueInGroup(tables, { queue, group: sql`l.group_key` })}`,
    )}
    )
    select count(*)::float8 as looked, max(l.group_key) as last from looked as l`;
}
