import { type SQL, sql } from 'drizzle-orm';
import { NO_GROUP } from '../../../core/job/group.ts';
import { ownColumnsOf } from '../../../core/schema/own-columns.ts';
import type { Runner } from '../../../core/sql/executor.ts';
import { groupColumns, haveCosts, isGroupedQueue, notedGroups } from '../../../core/sql/grouped-jobs.ts';
import { jsonRows } from '../../../core/sql/json-rows.ts';
import { ownDefault, ownNames, ownValue } from '../../../core/sql/own-values.ts';
import { lockPatience } from '../../../core/sql/row-locks.ts';
import { groupsInAny, isDistributed } from '../../../core/sql/statement-context.ts';
import { notified } from '../../../core/sql/wake-up.ts';
import { queryScheduleRows, type ScheduleTables } from '../sql/schedule-tables.ts';

/** A schedule whose next tick has come. */
export interface Firing {
  readonly name: string;
  /** Under which it was read. */
  readonly revision: number;
  /** The ticks that fire, in order: milliseconds since 1970. Often one; none when they pass. */
  readonly ticks: readonly number[];
  /** Ticks until then have fired or passed by this. */
  readonly passedMs: number;
  /** The next tick; `null` when none will come. */
  readonly nextMs: number | null;
}

export interface Fired {
  readonly name: string;
  /** The jobs of its ticks; fewer than ticks where one that may not overlap was still live. */
  readonly ids: readonly number[];
}

/**
 * Fires schedules: advances each and enqueues a job for each of its ticks, in one statement. Returns the
 * schedules that it fired.
 *
 * **Under concurrency.** The first worker to advance the row from a revision has fired its ticks, so each
 * tick fires once for any number of workers. After a crash, both the row and the jobs are written, or neither
 * is. A row that another transaction has locked is skipped. It does not wait for a user's open transaction,
 * with one exception: if that transaction has just enqueued or completed the job with which a tick must not
 * overlap, it waits at most 100 ms, then fails with 55P03 and changes nothing.
 *
 * @param channel where the workers of the queues are notified; `undefined`: nowhere
 */
export async function fireSchedules(
  db: Runner,
  tables: ScheduleTables,
  firings: readonly Firing[],
  channel: string | undefined,
): Promise<Fired[]> {
  const rows = await queryScheduleRows(db, tables, fireSchedulesQuery(tables, firings, channel));
  const fired = new Map<string, number[]>();
  for (const { name, id } of rows) {
    const ids = fired.get(String(name)) ?? [];
    fired.set(String(name), ids);
    if (id !== null) ids.push(Number(id));
  }
  return [...fired].map(([name, ids]) => ({ name, ids }));
}

export function fireSchedulesQuery(
  tables: ScheduleTables,
  firings: readonly Firing[],
  channel: string | undefined,
): SQL {
  const { queueJobs } = tables;
  const groups = groupsInAny(tables);
  const withCosts = haveCosts(tables);
  const own = ownColumnsOf(queueJobs);
  const values = own.map((column) => {
    const value = sql`(s.settings -> 'own' ->> ${column.key}::text)`;
    return sql`, case when s.settings -> 'own' -> ${column.key}::text is null
        then ${ownDefault(column)} else ${ownValue(column, value)} end`;
  });
  const { ctes, moved } = isDistributed(tables) ? movedAtOnce(tables) : movedIfUnlocked(tables);
  return sql`
    with i as (
      select * from ${jsonRows(firings.map(toRow), FIRING_COLUMNS)} as i
    ),
    ${ctes},
    inserted as (
      insert into ${queueJobs}
        (${COLUMNS}${groupColumns(withCosts)}${ownNames(own)})
      select s.queue, s.kind, s.payload, (s.settings ->> 'priority')::int2, statement_timestamp(),
        statement_timestamp(), (s.settings ->> 'maxAttempts')::int2,
        case when not s.overlap then ${OVERLAP_KEY}::text || s.name end,
        s.settings -> 'metadata' || t.tick${
          withCosts
            ? sql`, ${
                groups?.groupedQueues
                  ? sql`case when ${isGroupedQueue(groups.groupedQueues, sql`s.queue`)}
          then coalesce(s.settings ->> 'group', ${NO_GROUP}) end`
                  : sql`null`
              },
          coalesce((s.settings ->> 'cost')::int2, 1)`
            : sql``
        }${sql.join(values)}
      from ${moved} as s cross join lateral jsonb_array_elements(s.ticks) with ordinality as t(tick, place)
      order by s.place, t.place
      on conflict (queue, kind, unique_key) where unique_key is not null do nothing
      returning id, queue, metadata${groups ? sql`, group_key, run_at` : sql``}
    )${groups ? notedGroups(tables, 'inserted') : sql``}
    select m.name, j.id, ${
      channel === undefined
        ? sql`null`
        : sql`case when j.id is not null then ${notified(channel, sql`j.queue`)} end`
    } as woke
    from moved as m left join inserted as j on j.metadata ->> 'schedule' = m.name
    order by j.id`;
}

/** The schedules that advance, as CTEs, and the name of the CTE that has what a job needs from them. */
interface Moved {
  readonly ctes: SQL;
  readonly moved: SQL;
}

/** Passes over rows that are locked. */
function movedIfUnlocked(tables: ScheduleTables): Moved {
  const { queueSchedules } = tables;
  // Each array keeps the planner on the primary key: a join alone reads the whole table for a hundred rows.
  const ctes = sql`s as materialized (
      select s.name, s.queue, s.kind, s.payload, s.settings, s.overlap, s.last_at,
        i.ticks, i.passed_ms, i.next_ms, i.last_ms, i.place
      from i join ${queueSchedules} as s on s.name = i.name${lockPatience(tables, 'briefly')}
      where s.name = any(array(select name from i)) and s.revision = i.revision and s.paused_at is null
      order by i.place
      for update of s skip locked
    ),
    moved as (
      update ${queueSchedules} as m set ${MOVE}
      from s where m.name = any(array(select name from s)) and m.name = s.name
      returning m.name
    )`;
  return { ctes, moved: sql`s` };
}

/** For Citus, which neither locks rows of a reference table in a CTE nor limits the wait for a lock. */
function movedAtOnce({ queueSchedules }: ScheduleTables): Moved {
  const ctes = sql`moved as (
      update ${queueSchedules} as m set ${MOVE}
      from i as s where m.name = s.name and m.revision = s.revision and m.paused_at is null
      returning m.name, m.queue, m.kind, m.payload, m.settings, m.overlap, s.ticks, s.place
    )`;
  return { ctes, moved: sql`moved` };
}

const MOVE = sql`revision = m.revision + 1,
        next_at = to_timestamp(s.next_ms / 1000), passed_at = to_timestamp(s.passed_ms / 1000),
        last_at = coalesce(to_timestamp(s.last_ms / 1000), m.last_at)`;

/** Before the name of a schedule: the unique key of its jobs, where they must not overlap. */
export const OVERLAP_KEY = 'schedule:';

const COLUMNS = sql.raw(
  'queue, kind, payload, priority, run_at, created_at, max_attempts, unique_key, metadata',
);

const FIRING_COLUMNS =
  'name text, revision int8, ticks jsonb, passed_ms float8, next_ms float8, last_ms float8';

function toRow({ name, revision, ticks, passedMs, nextMs }: Firing): string {
  return JSON.stringify({
    name,
    revision,
    ticks: ticks.map((tick) => tickMetadata(name, tick)),
    passed_ms: passedMs,
    next_ms: nextMs,
    last_ms: ticks.at(-1) ?? null,
  });
}

/** What the metadata of a tick's job says. */
export function tickMetadata(schedule: string, tickMs: number): Record<'schedule' | 'tick', string> {
  return { schedule, tick: new Date(tickMs).toISOString() };
}
