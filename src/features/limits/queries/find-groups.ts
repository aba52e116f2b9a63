import { type SQL, sql } from 'drizzle-orm';
import { findCrews } from '../../../core/queries/operate/find-crews.ts';
import { kindsServed } from '../../../core/queue/stats/workers-of.ts';
import { dateOf, epochMs } from '../../../core/sql/epoch-ms.ts';
import type { Executor, RawRow } from '../../../core/sql/executor.ts';
import { servedKind } from '../../../core/sql/served-kind.ts';
import type { GroupSettings } from '../settings/limit-settings.ts';
import { hasJobsFor, isDueInGroup } from '../sql/due-in-group.ts';
import { isUpheld } from '../sql/group-rows.ts';
import { type GroupPage, type GroupTables, queryLimitRows } from '../sql/limit-tables.ts';

/** A group of a queue as claims see it. */
export interface GroupRecord {
  readonly group: string;
  /** How many of its jobs living workers hold. */
  readonly running: number;
  /**
   * Where it stands. `ready`: its jobs are claimed as its turn comes. `waiting`: until `readyAt`, when
   * some of its rate is free again, or its next job is due. `idle`: nothing is due, or something stops it.
   * `blocked`: by `blockedBy`.
   */
  readonly state: 'ready' | 'waiting' | 'idle' | 'blocked';
  /**
   * Why its next due job is not claimed; `null` when none is due, or when it is claimed as its turn comes.
   *
   * - `limit`: as many of its jobs run as its `concurrency` allows.
   * - `rate`: its rate is used up, until `readyAt`.
   * - `order`: its jobs run one after the other, and one before it runs, is to be retried, or was discarded.
   * - `handler`: no worker of the queue has a handler for what is due.
   *
   * A pause, and the limits of the queue and of a kind, stop jobs of all groups: see `queue.limits.list`.
   */
  readonly stoppedBy: 'limit' | 'rate' | 'order' | 'handler' | null;
  /** When claims look at it again; `null` unless it waits. */
  readonly readyAt: Date | null;
  /** The discarded job that stops it until `queue.limits.unblock`, or until it is redriven. */
  readonly blockedBy: number | null;
}

/**
 * One page of a queue's groups, by name, and what stops each. A group is among them from its first claim on.
 *
 * **Under concurrency.** Plain reads: claims change the groups all the time.
 */
export async function findGroups(
  db: Executor,
  tables: GroupTables,
  page: GroupPage,
  settings: GroupSettings,
): Promise<GroupRecord[]> {
  const kinds = kindsServed(await findCrews(db, tables), page.queue);
  const query = findGroupsQuery(tables, page, kinds, settings.serial !== undefined);
  const rows = await queryLimitRows(db, tables, query);
  return rows.map((row) => toGroupRecord(row, settings));
}

function toGroupRecord(row: RawRow, settings: GroupSettings): GroupRecord {
  const turn = row.turn === 'ready' || row.turn === 'waiting' ? row.turn : 'idle';
  return {
    group: String(row.group_key),
    running: Number(row.running),
    state: row.blocked_by === null ? turn : 'blocked',
    stoppedBy: stoppedBy(row, settings),
    readyAt: turn === 'waiting' ? dateOf(row.ready_at) : null,
    blockedBy: row.blocked_by === null ? null : Number(row.blocked_by),
  };
}

function stoppedBy(row: RawRow, { serial, concurrency, rate }: GroupSettings): GroupRecord['stoppedBy'] {
  const running = Number(row.running);
  if (row.due !== true) return null;
  if (serial !== undefined) {
    if (row.blocked_by !== null || row.retries === true || running > 0) return 'order';
  } else if (running >= Number(row.concurrency ?? concurrency ?? Number.POSITIVE_INFINITY)) {
    return 'limit';
  }
  if (row.served !== true) return 'handler';
  return row.turn === 'waiting' && (row.has_rate === true || rate !== undefined) ? 'rate' : null;
}

/**
 * `running`: jobs that living workers hold, or still run after `complete(tx)`. `turn`: when claims look at
 * the group. `retries`: whether a job that is to be retried keeps those behind it waiting. `concurrency` and
 * `has_rate`: as they were set, for the group or for every one. `due`: whether a job is due that no worker
 * holds; `served`: whether one of these is of a kind that a worker serves, in order the first of them.
 *
 * @param kinds that workers of the queue have handlers for; `undefined` where one of them does not say
 */
export function findGroupsQuery(
  tables: GroupTables,
  { queue, after, limit }: GroupPage,
  kinds: readonly string[] | undefined,
  serial: boolean,
): SQL {
  const { queueJobs, queueWorkers, queueGroups, queueHolds, queueLimits } = tables;
  const jobs = { queue, group: sql`g.group_key` };
  const setFor = (group: SQL, setting: SQL) => sql`(
        select l.${setting} from ${queueLimits} as l
        where l.queue = ${queue} and l.kind = '' and l.group_key = ${group}
      )`;
  const set = (setting: SQL) =>
    sql`coalesce(${setFor(sql`g.group_key`, setting)}, ${setFor(sql`'*'`, setting)})`;
  const served =
    kinds === undefined
      ? isDueInGroup(tables, jobs)
      : hasJobsFor(tables, { ...jobs, isTaken: servedKind(kinds), serial });
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
      ${served} as served
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
