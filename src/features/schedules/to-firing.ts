import { MOST_BYTES, ticksToFire } from './catch-up.ts';
import type { DueSchedule } from './queries/find-due-schedules.ts';
import type { Firing } from './queries/fire-schedules.ts';
import { ticksOf } from './timing.ts';

/**
 * What a schedule that is due fires now, and when it ticks next, by the database's clock alone. Of more ticks
 * than fit into one statement it fires the first, and is due again for the others.
 *
 * @throws TypeError when this runtime does not know its expression, its zone or its `catch_up`
 */
export function toFiring(schedule: DueSchedule): Firing {
  const { name, revision, catchUp, createdAtMs, passedAtMs, nowMs, jobBytes } = schedule;
  const ticks = ticksOf(schedule, createdAtMs);
  // Later than now where the clock was set back: what has passed must not come again.
  const untilMs = Math.max(passedAtMs, nowMs);
  const missed = ticksToFire(ticks, catchUp, passedAtMs, nowMs);
  const fitting = missed.slice(0, Math.max(Math.floor(MOST_BYTES / jobBytes), 1));
  const passedMs = fitting.length < missed.length ? (fitting.at(-1) ?? untilMs) : untilMs;
  return { name, revision, ticks: fitting, passedMs, nextMs: ticks.after(passedMs) ?? null };
}
