import { type SQL, sql } from 'drizzle-orm';
import type { Executor, Queue, Schedules } from '../../index.ts';
import {
  type DueSchedule,
  epochMs,
  findDueSchedules,
  fireSchedules,
  queryScheduleRows,
  toFiring,
} from '../../testing-face.ts';
import { shiftTimes } from './shift-times.ts';
import { writtenHere } from './written-here.ts';

/**
 * The schedules of a drain in which time passes. Jobs move back while it runs, and the calendar stays: a cron
 * expression fires at its true times to come, one tick after the other. At the end it moves as far as the
 * jobs.
 */
export class Calendar {
  #next: DueSchedule | undefined;
  /** The database's time at the last look, as it writes times. */
  #lookedAt = 'infinity';
  /** Whether it has fired since then, so that no handler has run. */
  #hasFired = false;
  /** The schedules that this transaction has written and that tick in time, with the kinds of their jobs. */
  #own: ReadonlyMap<string, string> = new Map();
  /** Schedules that another transaction has. */
  readonly #locked: string[] = [];

  constructor(
    private readonly db: Executor,
    private readonly queue: Queue,
    private readonly given: {
      readonly kinds: readonly string[];
      /** Whether only schedules that this transaction has written. */
      readonly written: boolean;
      /** Of ticks after that it knows nothing. */
      readonly untilMs: number;
    },
  ) {}

  /**
   * When the next tick comes, in milliseconds since 1970; `Infinity` where there is none in time.
   *
   * @param passedMs how far the jobs have moved back
   */
  async nextMs(passedMs: number): Promise<number> {
    const schedules = schedulesOf(this.queue);
    if (schedules === undefined) return Number.POSITIVE_INFINITY;
    const nowMs = await this.#takeIn(schedules.tables, passedMs);
    const { kinds, written, untilMs } = this.given;
    const own = [...this.#own].flatMap(([name, kind]) => (kinds.includes(kind) ? [name] : []));
    const [next] = await findDueSchedules(this.db, schedules.tables, {
      declared: written ? own : [],
      kinds: written ? [] : kinds,
      except: this.#locked,
      horizonMs: untilMs - nowMs,
      limit: 1,
    });
    this.#next = next;
    const nextMs = next?.nextAtMs ?? Number.POSITIVE_INFINITY;
    return nextMs > untilMs ? Number.POSITIVE_INFINITY : nextMs;
  }

  /**
   * What a handler has set since the last look begins at the time of the calendar, not at the database's. It
   * is known by its next tick, which is the moment of the set until it has been looked at. Of a schedule that
   * others had committed before, the ticks until then were theirs. The tick of a job that a handler has
   * enqueued by `runNow` is at the time of the calendar, too.
   */
  async #takeIn(tables: Schedules['tables'], passedMs: number): Promise<number> {
    const { written, untilMs } = this.given;
    const passed = sql`${passedMs}::float8 * interval '1 millisecond'`;
    const since = sql`${this.#lookedAt}::text::timestamptz`;
    const isNew = sql`(s.next_at >= ${since} and s.next_at <= s.passed_at
      and s.next_at <= statement_timestamp())`;
    const clock = sql`statement_timestamp() + ${passed}`;
    const known = JSON.stringify([...this.#own.keys()]);
    const wasTheirs =
      passedMs === 0 || !written
        ? sql`false`
        : sql`s.next_at < ${clock}
            and (s.name in (select jsonb_array_elements_text(${known}::text::jsonb))) is not true`;
    const beginsAt = sql`case when ${isNew} then s.next_at + ${passed} else ${clock} end`;
    const tick = sql`j.metadata ->> 'tick'`;
    const runNow =
      passedMs === 0 || this.#hasFired
        ? sql``
        : sql`, run_now as (
          update ${tables.queueJobs} as j
          set metadata = j.metadata
            || jsonb_build_object('tick', ${isoText(sql`(${tick})::timestamptz + ${passed}`)})
          where j.metadata ? 'schedule' and length(${tick}) = 24 and (${tick}) collate "C"
              between ${isoText(sql`${since} - interval '1 millisecond'`)}
              and ${isoText(sql`statement_timestamp()`)}
            and ${writtenHere('j')}
        )`;
    const [row] = await queryScheduleRows(
      this.db,
      tables,
      sql`
        with taken_in as (
          update ${tables.queueSchedules} as s
          set next_at = ${beginsAt}, passed_at = greatest(s.passed_at, ${beginsAt}),
            created_at = s.created_at
              + case when ${isNew} and s.created_at = s.next_at then ${passed} else '0'::interval end
          where (${isNew} or ${wasTheirs}) and ${writtenHere('s')}
        )${runNow}
        select statement_timestamp()::text as now, ${epochMs('statement_timestamp()')} as now_ms,
          (
            select json_object_agg(s.name, s.kind) from ${tables.queueSchedules} as s
            where s.next_at <= to_timestamp(${untilMs}::float8 / 1000) and s.declared_by is null
              and ${writtenHere('s')}
          )::text as own`,
    );
    this.#lookedAt = String(row?.now);
    this.#own = new Map(Object.entries(JSON.parse(String(row?.own ?? '{}'))));
    this.#hasFired = false;
    return Number(row?.now_ms);
  }

  /** Fires what {@link nextMs} has found: at its time, or at a later one. */
  async fire(atMs: number): Promise<void> {
    const next = this.#next;
    const schedules = schedulesOf(this.queue);
    if (next === undefined || schedules === undefined) return;
    const nowMs = Math.max(Math.floor(atMs), next.nextAtMs ?? atMs);
    const fired = await fireSchedules(this.db, schedules.tables, [toFiring({ ...next, nowMs })], undefined);
    this.#hasFired = true;
    // Another transaction has it.
    if (fired.length === 0) this.#locked.push(next.name);
  }

  async close(passedMs: number): Promise<void> {
    // Ticks of `every` are whole seconds: moved by less, the one that has just fired would come again.
    const ms = passedMs - (passedMs % 1_000);
    if (ms > 0) await shiftTimes(this.db, this.queue, { ms, written: this.given.written, only: 'calendar' });
  }
}

/** A time as JavaScript writes it. */
function isoText(time: SQL): SQL {
  return sql`to_char((${time}) at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`;
}

function schedulesOf(queue: Queue): Schedules | undefined {
  // `createQueue` has put it there, or nothing.
  return queue.schedules as Schedules | undefined;
}
