import { sql } from 'drizzle-orm';
import type { Executor, Queue, Schedules } from '../../index.ts';
import {
  type DueSchedule,
  findDueSchedules,
  fireSchedules,
  queryScheduleRows,
  toFiring,
} from '../../internal.ts';
import { shiftTimes } from './shift-times.ts';
import { writtenHere } from './written-here.ts';

/**
 * The schedules of a drain in which time passes. Jobs move back while it runs, and the calendar stays: a cron
 * expression fires at its true times to come, one tick after the other. At the end it moves as far as the
 * jobs.
 */
export class Calendar {
  #passedMs = 0;
  #next: DueSchedule | undefined;
  /** The database's time at the last look, as it writes times. */
  #lookedAt = 'infinity';

  private constructor(
    private readonly db: Executor,
    private readonly queue: Queue,
    private readonly kinds: readonly string[],
    private readonly written: boolean,
    /** Those that are not to fire. */
    private readonly except: string[],
  ) {}

  static async of(
    db: Executor,
    queue: Queue,
    { kinds, written }: { readonly kinds: readonly string[]; readonly written: boolean },
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
    return new Calendar(db, queue, kinds, written, names);
  }

  /** How long until the next tick; `Infinity` where there is none in that time. */
  async nextInMs(horizonMs: number): Promise<number> {
    const schedules = schedulesOf(this.queue);
    if (schedules === undefined) return Number.POSITIVE_INFINITY;
    await this.#takeIn(schedules.tables);
    const [next] = await findDueSchedules(this.db, schedules.tables, {
      declared: [],
      kinds: this.kinds,
      except: this.except,
      horizonMs: this.#passedMs + horizonMs,
      limit: 1,
    });
    this.#next = next;
    return next === undefined ? Number.POSITIVE_INFINITY : Math.max(next.dueInMs - this.#passedMs, 0);
  }

  /**
   * What a handler has set since the last look begins at the time of the calendar, not at the database's. It
   * is known by its next tick, which is the moment of the set until it has been looked at.
   */
  async #takeIn(tables: Schedules['tables']): Promise<void> {
    const passed = sql`${this.#passedMs}::float8 * interval '1 millisecond'`;
    const [row] = await queryScheduleRows(
      this.db,
      tables,
      sql`
        with taken_in as (
          update ${tables.queueSchedules} as s
          set next_at = s.next_at + ${passed}, passed_at = greatest(s.passed_at, s.next_at + ${passed}),
            created_at = s.created_at
              + case when s.created_at = s.next_at then ${passed} else '0'::interval end
          where s.next_at >= ${this.#lookedAt}::text::timestamptz and s.next_at <= s.passed_at
            and s.next_at <= statement_timestamp() and ${writtenHere('s')}
        )
        select statement_timestamp()::text as now`,
    );
    this.#lookedAt = String(row?.now);
  }

  pass(ms: number): void {
    this.#passedMs += ms;
  }

  /** Fires what {@link nextInMs} has found, at its time. */
  async fire(): Promise<void> {
    const next = this.#next;
    const schedules = schedulesOf(this.queue);
    if (next === undefined || schedules === undefined) return;
    const nowMs = Math.max(next.nowMs + this.#passedMs, Math.ceil(next.nowMs + next.dueInMs));
    const fired = await fireSchedules(this.db, schedules.tables, [toFiring({ ...next, nowMs })], undefined);
    // Another transaction has it.
    if (fired.length === 0) this.except.push(next.name);
  }

  async close(): Promise<void> {
    if (this.#passedMs === 0) return;
    const { written } = this;
    await shiftTimes(this.db, this.queue, { ms: this.#passedMs, written, only: 'calendar' });
  }
}

function schedulesOf(queue: Queue): Schedules | undefined {
  // `createQueue` has put it there, or nothing.
  return queue.schedules as Schedules | undefined;
}
