import { type SQL, sql } from 'drizzle-orm';
import { dateOf, epochMs } from '../../../core/sql/epoch-ms.ts';
import type { RawRow } from '../../../core/sql/executor.ts';
import type { CatchUp } from '../../control/index.ts';

/** When a schedule ticks, as it is stored. All times are milliseconds since 1970. */
export interface Timing {
  /** `null` with `everyMs`. */
  readonly cron: string | null;
  readonly everyMs: number | null;
  readonly timeZone: string;
  readonly startsAtMs: number | null;
  readonly endsAtMs: number | null;
}

/** A schedule, checked and ready to be stored. */
export interface NewSchedule extends Timing {
  readonly name: string;
  readonly queue: string;
  readonly kind: string;
  /** JSON text. */
  readonly payload: string;
  /** JSON text of `TickSettings`. */
  readonly settings: string;
  readonly catchUp: CatchUp;
  readonly overlap: boolean;
}

/** What of a stored schedule decides about its ticks. */
export interface StoredTiming extends Timing {
  readonly name: string;
  readonly revision: number;
  readonly catchUp: CatchUp;
  /** `null` when no tick will come. */
  readonly nextAtMs: number | null;
  /** Ticks until then have fired or passed. */
  readonly passedAtMs: number;
  readonly createdAtMs: number;
}

export interface StoredSchedule extends StoredTiming {
  readonly queue: string;
  readonly kind: string;
  /** JSON texts. */
  readonly payload: string;
  readonly settings: string;
  readonly overlap: boolean;
  readonly lastAtMs: number | null;
  readonly pausedAtMs: number | null;
  readonly declared: boolean;
}

/** The columns of `queue_schedules as s` that {@link toStoredTiming} reads. */
export const timingColumns: SQL = sql`s.name, s.revision, s.cron, s.every_ms, s.time_zone, s.catch_up,
      ${epochMs('s.starts_at')} as starts_at, ${epochMs('s.ends_at')} as ends_at,
      ${epochMs('s.next_at')} as next_at, ${epochMs('s.passed_at')} as passed_at,
      ${epochMs('s.created_at')} as created_at`;

/** The columns of `queue_schedules as s` that {@link toStoredSchedule} reads. */
export const scheduleColumns: SQL = sql`${timingColumns}, s.queue, s.kind, s.payload::text as payload,
      s.settings::text as settings, s.overlap, ${epochMs('s.last_at')} as last_at,
      ${epochMs('s.paused_at')} as paused_at, s.declared_by is not null as declared`;

export function toStoredTiming(row: RawRow): StoredTiming {
  return {
    name: String(row.name),
    revision: Number(row.revision),
    cron: row.cron === null ? null : String(row.cron),
    everyMs: row.every_ms === null ? null : Number(row.every_ms),
    timeZone: String(row.time_zone),
    // Checked on the way in; another value comes from other hands, and is refused when it is to fire.
    catchUp: row.catch_up as CatchUp,
    startsAtMs: timeOf(row.starts_at),
    endsAtMs: timeOf(row.ends_at),
    nextAtMs: timeOf(row.next_at),
    passedAtMs: dateOf(row.passed_at).getTime(),
    createdAtMs: dateOf(row.created_at).getTime(),
  };
}

export function toStoredSchedule(row: RawRow): StoredSchedule {
  return {
    ...toStoredTiming(row),
    queue: String(row.queue),
    kind: String(row.kind),
    payload: String(row.payload),
    settings: String(row.settings),
    overlap: row.overlap === true,
    lastAtMs: timeOf(row.last_at),
    pausedAtMs: timeOf(row.paused_at),
    declared: row.declared === true,
  };
}

function timeOf(value: unknown): number | null {
  return value === null ? null : dateOf(value).getTime();
}

/** A schedule as one row of JSON, for the columns of {@link NEW_COLUMNS}. */
export function newScheduleRow(schedule: NewSchedule): string {
  const { payload, settings, ...plain } = schedule;
  const row = JSON.stringify({
    name: plain.name,
    queue: plain.queue,
    kind: plain.kind,
    cron: plain.cron,
    every_ms: plain.everyMs,
    time_zone: plain.timeZone,
    catch_up: plain.catchUp,
    overlap: plain.overlap,
    starts_at_ms: plain.startsAtMs,
    ends_at_ms: plain.endsAtMs,
  });
  return `${row.slice(0, -1)},"payload":${payload},"settings":${settings}}`;
}

export const NEW_COLUMNS =
  'name text, queue text, kind text, payload jsonb, settings jsonb, cron text, every_ms int8, ' +
  'time_zone text, catch_up text, overlap bool, starts_at_ms float8, ends_at_ms float8';

/** What {@link newSchedules} sets, in its order. */
export const SET_COLUMNS: SQL = sql.raw(
  'name, queue, kind, payload, settings, cron, every_ms, time_zone, catch_up, overlap, starts_at, ends_at',
);

/** The columns of {@link SET_COLUMNS} of rows `i`. */
export const newSchedules: SQL = sql`i.name, i.queue, i.kind, coalesce(i.payload, 'null'::jsonb), i.settings,
      i.cron, i.every_ms, i.time_zone, i.catch_up, i.overlap, to_timestamp(i.starts_at_ms / 1000),
      to_timestamp(i.ends_at_ms / 1000)`;

/**
 * The revision of a schedule that is new at a time: one of the same name that was removed never had it, and
 * another that has just been inserted has another.
 */
export function firstRevision(at: string): SQL {
  return sql.raw(`(date_part('epoch', ${at}) * 1000000)::int8`);
}

/** Whether the stored schedule `s` ticks as the one of the other rows. */
export function ticksAlike(other: string): SQL {
  return sql.raw(
    `(s.cron, s.every_ms, s.time_zone, s.starts_at, s.ends_at) is not distinct from ` +
      `(${['cron', 'every_ms', 'time_zone', 'starts_at', 'ends_at'].map((name) => `${other}.${name}`)})`,
  );
}

/**
 * The assignments of an upsert into `queue_schedules as s`. A schedule that ticks as before keeps its place;
 * another begins with its first tick after this moment. Its times are those of the row that was to be
 * inserted, since Citus refuses a function of time here.
 */
export const replaceSchedule: SQL = sql`
      queue = excluded.queue, kind = excluded.kind, payload = excluded.payload, settings = excluded.settings,
      cron = excluded.cron, every_ms = excluded.every_ms, time_zone = excluded.time_zone,
      catch_up = excluded.catch_up, overlap = excluded.overlap,
      starts_at = excluded.starts_at, ends_at = excluded.ends_at,
      next_at = case when ${ticksAlike('excluded')} then s.next_at else excluded.next_at end,
      passed_at = case when ${ticksAlike('excluded')} then s.passed_at
        else greatest(s.passed_at, excluded.passed_at) end,
      declared_by = excluded.declared_by, seen_at = excluded.seen_at, revision = s.revision + 1`;
