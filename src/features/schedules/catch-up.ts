import { shown } from '../../core/job/shown.ts';
import type { CatchUp } from '../control/index.ts';
import type { Ticks } from './timing.ts';

export const CATCH_UPS: readonly CatchUp[] = ['latest', 'all', 'none'];

/** A schedule of every second that was forgotten for a year must not become 31 million jobs. */
export const MOST_TICKS = 1_000;

/** The most bytes of jobs in one statement that fires: with large payloads a thousand ticks take minutes. */
export const MOST_BYTES = 8 * 1024 * 1024;

/** A tick that is less old is merely late, as with any worker; an older one was missed in a downtime. */
export const LATE_MS = 60_000;

/**
 * The ticks that fire now, in order: of those after one instant and up to another.
 *
 * @throws TypeError for a value that another hand has stored
 */
export function ticksToFire(ticks: Ticks, catchUp: CatchUp, afterMs: number, nowMs: number): number[] {
  if (catchUp === 'all') return ticks.newest(MOST_TICKS, afterMs, nowMs);
  if (!CATCH_UPS.includes(catchUp)) {
    throw new TypeError(`catch_up must be one of ${CATCH_UPS.join(', ')}; got ${shown(catchUp)}`);
  }
  const newest = ticks.newest(1, afterMs, nowMs);
  return catchUp === 'latest' ? newest : newest.filter((tick) => nowMs - tick < LATE_MS);
}
