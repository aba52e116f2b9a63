import { type SQL, sql } from 'drizzle-orm';
import { dateOf, epochMs } from '../../../core/sql/epoch-ms.ts';
import type { Executor } from '../../../core/sql/executor.ts';
import { servedKind } from '../../../core/sql/served-kind.ts';
import { isDueInGroup } from '../sql/due-in-group.ts';
import { isUpheld } from '../sql/group-rows.ts';
import { type GroupTables, queryLimitRows } from '../sql/limit-tables.ts';

export interface GroupPage {
  readonly queue: string;
  /** Groups behind this one, by name. */
  readonly after: string;
  readonly limit: number;
  /** The kinds that workers of the queue have handlers for; `undefined` where one of them does not say. */
  readonly kinds: readonly string[] | undefined;
}

/** A group of a queue as claims see it. */
export interface GroupFacts {
  readonly group: string;
  /** How many of its jobs living workers hold, or still run after `complete(tx)`. */
  readonly running: number;
  /** When claims look at it: `ready` now, `waiting` at `readyAt`, `idle` after a note. */
  readonly turn: 'ready' | 'waiting' | 'idle';
  readonly readyAt: Date | undefined;
  /** The discarded job that stops it. */
  readonly blockedBy: number | undefined;
  /** Whether a job that is to be retried keeps those behind it waiting. */
  readonly retries: boolean;
  /** Its own limit, or that of every group, as they were set. */
  readonly concurrency: number | undefined;
  /** Whether a rate was set, of it or of every group. */
  readonly hasRate: boolean;
  /** Whether a job is due that no worker holds. */
  readonly due: boolean;
  /** Whether one of these is of a kind that a worker serves. */
  readonly served: boolean;
}

/**
 * One page of a queue's groups, by name. A group is among them from its first claim on.
 *
 * **Under concurrency.** A plain read: claims change the groups all the time.
 */
export async function findGroups(db: Executor, tables: GroupTables, page: GroupPage): Promise<GroupFacts[]> {
  const rows = await queryLimitRows(db, tables, findGroupsQuery(tables, page));
  return rows.map((row) => ({
    group: String(row.group_key),
    running: Number(row.running),
    turn: row.turn === 'ready' || row.turn === 'waiting' ? row.turn : 'idle',
    readyAt: row.turn === 'waiting' ? dateOf(row.ready_at) : undefined,
    blockedBy: row.blocked_by === null ? undefined : Number(row.blocked_by),
    retries: row.retries === true,
    concurrency: row.concurrency === null ? undefined : Number(row.concurrency),
    hasRate: row.has_rate === true,
    due: row.due === true,
    served: row.served === true,
  }));
}

export function findGroupsQuery(tables: GroupTables, { queue, after, limit, kinds }: GroupPage): SQL {
  const { queueJobs, queueWorkers, queueGroups, queueHolds, queueLimits } = tables;
  const jobs = { queue, group: sql`g.group_key` };
  const setFor = (group: SQL, setting: SQL) => sql`(
        select l.${setting} from ${queueLimits} as l
        where l.queue = ${queue} and l.kind = '' and l.group_key = ${group}
      )`;
  const set = (setting: SQL) =>
    sql`coalesce(${setFor(sql`g.group_key`, setting)}, ${setFor(sql`'*'`, setting)})`;
  return sql`
    select g.group_key, r.running + h.going_on as running, h.blocked_by, h.retries,
      ${epochMs("nullif(nullif(g.ready_at, 'infinity'), '-infinity')")} as ready_at,
      case
        when g.ready_at = 'infinity' then 'idle'
        when g.ready_at <= statement_timestamp() then 'ready'
        else 'waiting'
      end as turn,
      ${set(sql`concurrency`)} as concurrency,
      ${set(sql`rate_limit`)} is not null as has_rate,
      ${isDueInGroup(tables, jobs)} as due,
      ${isDueInGroup(tables, { ...jobs, and: kinds && servedKind(kinds) })} as served
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
      select min(h.job_id) filter (where h.until = 'infinity' and h.worker_id is null) as blocked_by,
        (count(h.worker_id) filter (where h.until = 'infinity'))::float8 as going_on,
        count(*) filter (where h.until < 'infinity' and h.until > statement_timestamp()) > 0 as retries
      from ${queueHolds} as h
      where h.queue = ${queue} and h.group_key = g.group_key and ${isUpheld(tables)}
    ) as h
    order by g.group_key`;
}
