import { ticksToFire } from './catch-up.ts';
import type { DueSchedule } from './queries/find-due-schedules.ts';
import type { Firing } from './queries/fire-schedules.ts';
import { ticksOf } from './timing.ts';

/**
 * What a schedule that is due fires now, and when it ticks next, by the database's clock alone.
 *
 * @throws TypeError when this runtime does not know its expression or zone
 */
export function toFiring(schedule: DueSchedule): Firing {
  const { name, revision, catchUp, createdAtMs, passedAtMs, nowMs } = schedule;
  const ticks = ticksOf(schedule, createdAtMs);
  // Later than now where the clock was set back: what has passed must not come again.
  const passedMs = Math.max(passedAtMs, nowMs);
  return {
    name,
    revision,
    ticks: ticksToFire(ticks, catchUp, passedAtMs, nowMs),
    passedMs,
    nextMs: ticks.after(passedMs) ?? null,
  };
}
