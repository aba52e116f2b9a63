import type { CatchUp } from '../control/index.ts';
import type { StoredSchedule, Timing } from './sql/stored-schedule.ts';
import { type Ticks, ticksOf } from './timing.ts';

/** A schedule as it is stored. */
export interface ScheduleRecord {
  readonly name: string;
  readonly kind: string;
  readonly queue: string;
  /** As it is stored: the input of the definition's schema. */
  readonly payload: unknown;
  /** `null` with `every`. */
  readonly cron: string | null;
  /** Milliseconds from tick to tick; `null` with `cron`. */
  readonly every: number | null;
  readonly timeZone: string;
  readonly catchUp: CatchUp;
  readonly overlap: boolean;
  readonly startsAt: Date | null;
  readonly endsAt: Date | null;
  /** The next tick, in the past until a worker fires it; `null` while paused, and when none will come. */
  readonly nextAt: Date | null;
  /** The newest tick that has fired, even if its job was left out because it must not overlap a live one. */
  readonly lastAt: Date | null;
  readonly pausedAt: Date | null;
  /** Whether workers declare it in code; otherwise it was set. */
  readonly declared: boolean;
  readonly createdAt: Date;
}

export function toScheduleRecord(schedule: StoredSchedule): ScheduleRecord {
  const { name, kind, queue, cron, everyMs, timeZone, catchUp, overlap, declared } = schedule;
  return {
    name,
    kind,
    queue,
    payload: JSON.parse(schedule.payload),
    cron,
    every: everyMs,
    timeZone,
    catchUp,
    overlap,
    startsAt: dateOrNull(schedule.startsAtMs),
    endsAt: dateOrNull(schedule.endsAtMs),
    nextAt: dateOrNull(nextAtMs(schedule)),
    lastAt: dateOrNull(schedule.lastAtMs),
    pausedAt: dateOrNull(schedule.pausedAtMs),
    declared,
    createdAt: new Date(schedule.createdAtMs),
  };
}

/** The next ticks of a schedule, the first of which is known. */
export function ticksFrom(schedule: ScheduleRecord, count: number): Date[] {
  const { cron, every, timeZone, startsAt, endsAt, nextAt, createdAt } = schedule;
  if (nextAt === null) return [];
  const timing = { cron, everyMs: every, timeZone, startsAtMs: msOf(startsAt), endsAtMs: msOf(endsAt) };
  const ticks = [nextAt];
  const known = ticksIfKnown(timing, createdAt.getTime());
  if (known === undefined) return ticks;
  const { after } = known;
  let tick = after(nextAt.getTime());
  while (tick !== undefined && ticks.length < count) {
    ticks.push(new Date(tick));
    tick = after(tick);
  }
  return ticks;
}

function msOf(date: Date | null): number | null {
  return date?.getTime() ?? null;
}

function nextAtMs(schedule: StoredSchedule): number | null {
  const { nextAtMs, passedAtMs, pausedAtMs, createdAtMs } = schedule;
  if (pausedAtMs !== null || nextAtMs === null) return null;
  if (nextAtMs > passedAtMs) return nextAtMs;
  // No worker has computed it yet.
  const ticks = ticksIfKnown(schedule, createdAtMs);
  return ticks === undefined ? nextAtMs : (ticks.after(passedAtMs) ?? null);
}

/** `undefined` for a zone or an expression that is not known here: one such row must not hide the others. */
function ticksIfKnown(timing: Timing, createdAtMs: number): Ticks | undefined {
  try {
    return ticksOf(timing, createdAtMs);
  } catch {
    return undefined;
  }
}

function dateOrNull(ms: number | null): Date | null {
  return ms === null ? null : new Date(ms);
}
