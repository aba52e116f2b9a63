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

  private constructor(
    private readonly db: Executor,
    private readonly queue: Queue,
    private readonly kinds: readonly string[],
    private readonly written: boolean,
    /** Of ticks after that it knows nothing. */
    private readonly untilMs: number,
    /** The schedules that are not to fire. */
    private readonly except: string[],
  ) {}

  static async of(
    db: Executor,
    queue: Queue,
    {
      kinds,
      written,
      untilMs,
    }: { readonly kinds: readonly string[]; readonly written: boolean; readonly untilMs: number },
  ): Promise<Calendar> {
    const tables = schedulesOf(queue)?.tables;
    const others =
      tables === undefined || !written
        ? []
        : await queryScheduleRows(
            db,
            tables,
            sql`select s.name from ${tables.queueSchedules} as s where not (${writtenHere('s')})`,
          );
    const names = others.map(({ name }) => String(name));
    return new Calendar(db, queue, kinds, written, untilMs, names);
  }

  /**
   * When the next tick comes, in milliseconds since 1970; `Infinity` where there is none in time.
   *
   * @param passedMs how far the jobs have moved back
   */
  async nextMs(passedMs: number): Promise<number> {
    const schedules = schedulesOf(this.queue);
    if (schedules === undefined) return Number.POSITIVE_INFINITY;
    const nowMs = await this.#takeIn(schedules.tables, passedMs);
    const [next] = await findDueSchedules(this.db, schedules.tables, {
      declared: [],
      kinds: this.kinds,
      except: this.except,
      horizonMs: this.untilMs - nowMs,
      limit: 1,
    });
    this.#next = next;
    const nextMs = next?.nextAtMs ?? Number.POSITIVE_INFINITY;
    return nextMs > this.untilMs ? Number.POSITIVE_INFINITY : nextMs;
  }

  /**
   * What a handler has set since the last look begins at the time of the calendar, not at the database's. It
   * is known by its next tick, which is the moment of the set until it has been looked at. So does the tick
   * of a job that a handler has enqueued by `runNow`.
   */
  async #takeIn(tables: Schedules['tables'], passedMs: number): Promise<number> {
    const passed = sql`${passedMs}::float8 * interval '1 millisecond'`;
    const since = sql`${this.#lookedAt}::text::timestamptz`;
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
          set next_at = s.next_at + ${passed}, passed_at = greatest(s.passed_at, s.next_at + ${passed}),
            created_at = s.created_at
              + case when s.created_at = s.next_at then ${passed} else '0'::interval end
          where s.next_at >= ${since} and s.next_at <= s.passed_at
            and s.next_at <= statement_timestamp() and ${writtenHere('s')}
        )${runNow}
        select statement_timestamp()::text as now, ${epochMs('statement_timestamp()')} as now_ms`,
    );
    this.#lookedAt = String(row?.now);
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
    if (fired.length === 0) this.except.push(next.name);
  }

  async close(passedMs: number): Promise<void> {
    // Ticks of `every` are whole seconds: moved by less, the one that has just fired would come again.
    const ms = passedMs - (passedMs % 1_000);
    if (ms > 0) await shiftTimes(this.db, this.queue, { ms, written: this.written, only: 'calendar' });
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
