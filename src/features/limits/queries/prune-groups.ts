import { type SQL, sql } from 'drizzle-orm';
import type { Runner } from '../../../core/sql/executor.ts';
import { MAX_PER_MS } from '../settings/limit-settings.ts';
import { isOfGroup, isUpheld } from '../sql/group-rows.ts';
import { type GroupTables, queryLimitRows } from '../sql/limit-tables.ts';
import { rateWindow } from '../sql/rate-used.ts';

/** How many groups one statement looks at. */
export const PRUNED_AT_ONCE = 1_000;

export interface GroupPrune {
  readonly queue: string;
  /** Goes on behind this group; '' from the start. */
  readonly after: string;
  /** The window of the declared rate of each group, in milliseconds; `undefined` for none. */
  readonly ratePerMs: number | undefined;
}

export interface GroupsPruned {
  /** The last group that it has looked at; `undefined` at the end. */
  readonly last: string | undefined;
  /** How many were deleted. */
  readonly pruned: number;
}

/**
 * Deletes those of the next groups of one queue that have no jobs and whose rate is unused, and the holds of
 * jobs that no longer exist. Where it knows of no rate, another process may: then what was used within the
 * longest window counts.
 *
 * **Under concurrency.** A group that a claim has locked stays. A job that is enqueued meanwhile has a note,
 * and the claim that heeds it makes the group again: it only loses its place in the ring.
 */
export async function pruneGroups(db: Runner, tables: GroupTables, prune: GroupPrune): Promise<GroupsPruned> {
  const [row] = await queryLimitRows(db, tables, pruneGroupsQuery(tables, prune));
  return {
    last: Number(row?.looked) < PRUNED_AT_ONCE ? undefined : String(row?.last),
    pruned: Number(row?.pruned),
  };
}

export function pruneGroupsQuery(tables: GroupTables, { queue, after, ratePerMs }: GroupPrune): SQL {
  const { queueJobs, queueGroups, queueHolds, queueLimits } = tables;
  return sql`
    with looked as materialized (
      select g.group_key, g.turn from ${queueGroups} as g
      where g.queue = ${queue} and g.group_key > ${after}
      order by g.group_key limit (select ${PRUNED_AT_ONCE}::int8)
    ),
    locked as materialized (
      select g.group_key, g.rate_used, coalesce((
          select max(l.rate_per_ms) from ${queueLimits} as l
          where l.queue = ${queue} and l.kind = '' and l.group_key in ('*', g.group_key)
        ), ${ratePerMs ?? MAX_PER_MS}::int8) as rate_per_ms
      from looked as s cross join lateral (
        select g.group_key, g.rate_used from ${queueGroups} as g
        where g.queue = ${queue} and g.group_key = s.group_key and g.turn = s.turn and g.ready_at = 'infinity'
        for update skip locked
      ) as g
    ),
    unused as materialized (
      select l.group_key from locked as l
      cross join lateral ${rateWindow(sql`l.rate_used`, sql`l.rate_per_ms`, sql`0`)} as u
      where u.used = 0 and not exists (
        select from ${queueJobs} as j
        where ${isOfGroup(queue, sql`l.group_key`)})
    ),
    pruned as (
      delete from ${queueGroups} as g
      where g.queue = ${queue} and g.group_key = any(array(select group_key from unused))
    ),
    swept as (
      delete from ${queueHolds} as h
      where h.queue = ${queue} and h.group_key = any(array(select group_key from unused))
        and (h.until <= statement_timestamp() or not ${isUpheld(tables)})
    )
    select count(*)::float8 as looked, max(l.group_key) as last,
      (select count(*)::float8 from unused) as pruned
    from looked as l`;
}
