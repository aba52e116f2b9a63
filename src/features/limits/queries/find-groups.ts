import { type SQL, sql } from 'drizzle-orm';
import { CONTROL_ENTRY } from '../../../core/sql/control-entry.ts';
import { dateOf, epochMs } from '../../../core/sql/epoch-ms.ts';
import { type Executor, queryRows } from '../../../core/sql/executor.ts';
import { isUpheld } from '../sql/group-hold.ts';
import type { GroupTables } from '../sql/grouping.ts';

export interface GroupPage {
  readonly queue: string;
  /** Groups behind this one, by name. */
  readonly after: string;
  readonly limit: number;
}

/** A group of a queue as claims see it. */
export interface GroupRecord {
  readonly group: string;
  /** How many of its jobs living workers hold. */
  readonly running: number;
  /**
   * Where it stands. `ready`: its jobs are claimed as its turn comes. `waiting`: until `readyAt`, when
   * some of its rate is free again, or its next job is due. `idle`: nothing is due, or it is at its limit.
   * `blocked`: by `blockedBy`.
   */
  readonly state: 'ready' | 'waiting' | 'idle' | 'blocked';
  /** When claims look at it again; `null` unless it waits. */
  readonly readyAt: Date | null;
  /** The discarded job that stops it until `queue.limits.unblock`, or until it is redriven. */
  readonly blockedBy: number | null;
}

/**
 * One page of a queue's groups, by name. A group is among them from its first claim on.
 *
 * **Under concurrency.** A plain read: claims change the groups all the time.
 */
export async function findGroups(db: Executor, tables: GroupTables, page: GroupPage): Promise<GroupRecord[]> {
  const rows = await queryRows(db, tables, findGroupsQuery(tables, page), { entry: CONTROL_ENTRY });
  return rows.map((row) => {
    const blockedBy = row.blocked_by === null ? null : Number(row.blocked_by);
    const waiting = row.ready === 'waiting';
    return {
      group: String(row.group_key),
      running: Number(row.running),
      state: blockedBy !== null ? 'blocked' : waiting ? 'waiting' : row.ready === 'ready' ? 'ready' : 'idle',
      readyAt: waiting ? dateOf(row.ready_at) : null,
      blockedBy,
    };
  });
}

export function findGroupsQuery(tables: GroupTables, { queue, after, limit }: GroupPage): SQL {
  const { queueJobs, queueWorkers, queueGroups, queueHolds } = tables;
  return sql`
    select g.group_key, r.running + h.going_on as running, h.blocked_by,
      ${epochMs("nullif(nullif(g.ready_at, 'infinity'), '-infinity')")} as ready_at,
      case
        when g.ready_at = 'infinity' then 'idle'
        when g.ready_at <= statement_timestamp() then 'ready'
        else 'waiting'
      end as ready
    from (
      select g.group_key, g.ready_at, g.held from ${queueGroups} as g
      where g.queue = ${queue} and g.group_key > ${after} order by g.group_key limit ${limit}
    ) as g
    cross join lateral (
      select count(*) filter (where exists (
          select from ${queueJobs} as j
          where j.queue = ${queue} and j.id = h.job_id
            and j.worker_id in (select w.id from ${queueWorkers} as w)
        ))::float8 as running
      from unnest(g.held) as h(job_id)
    ) as r
    cross join lateral (
      select min(h.job_id) filter (where h.worker_id is null) as blocked_by,
        count(h.worker_id)::float8 as going_on
      from ${queueHolds} as h
      where h.queue = ${queue} and h.group_key = g.group_key and h.until = 'infinity' and ${isUpheld(tables)}
    ) as h
    order by g.group_key`;
}
