import { parseCron } from './cron.ts';
import type { Timing } from './sql/stored-schedule.ts';
import { changeOf, DAY_MS, firstShown, wallTime, type Zone, zoneOf } from './zone.ts';

export interface Ticks {
  /** The first tick after an instant; `undefined` when there is none. */
  after(instantMs: number): number | undefined;
  /** The newest `count` ticks after one instant and up to another, in order. */
  newest(count: number, afterMs: number, untilMs: number): number[];
}

/** The first look back for the newest ticks; each further one reaches this many times as far. */
const FIRST_LOOK_MS = 60_000;
const FURTHER = 8;

/**
 * The ticks of a timing.
 *
 * @param createdAtMs where the ticks of `every` are counted from, when they have no start
 * @throws TypeError when the expression or the zone is unknown here, or the interval has no length
 */
export function ticksOf(timing: Timing, createdAtMs: number): Ticks {
  const { cron, everyMs, timeZone, startsAtMs, endsAtMs } = timing;
  // A row that was changed by hand may say so, and no look at its ticks ends.
  if (everyMs !== null && !(everyMs >= 1)) throw new TypeError(`every_ms must be at least 1, got ${everyMs}`);
  const first = startsAtMs ?? Math.floor(createdAtMs / 1_000) * 1_000;
  const found =
    cron === null
      ? (afterMs: number) => nextInterval(first, everyMs ?? Number.POSITIVE_INFINITY, afterMs)
      : nextMatch(cron, zoneOf('time_zone', timeZone));
  const after = (instantMs: number): number | undefined => {
    const tick = found(Math.max(instantMs, (startsAtMs ?? Number.NEGATIVE_INFINITY) - 1));
    return tick === undefined || tick > (endsAtMs ?? LAST_MS) ? undefined : tick;
  };
  return { after, newest: (count, afterMs, untilMs) => newest(after, count, afterMs, untilMs) };
}

/** Postgres and JavaScript agree on times until here. */
const LAST_MS = Date.UTC(9999, 11, 31);

function nextInterval(firstMs: number, everyMs: number, afterMs: number): number {
  return firstMs + Math.max(Math.floor((afterMs - firstMs) / everyMs) + 1, 0) * everyMs;
}

/**
 * Vixie's rule where a clock is changed. An expression that names every hour follows elapsed time: it fires
 * in both passes of a repeated hour and never in a skipped one. Any other means times on a wall: one in a gap
 * fires at its end, several in one gap fire once, and one that comes twice fires the first time. Vixie's cron
 * itself looks at the star: every sixth hour loses a midnight that falls into a gap, and `0-23` one in
 * autumn.
 */
function nextMatch(expression: string, zone: Zone): (afterMs: number) => number | undefined {
  const cron = parseCron('cron', expression);
  return cron.everyHour ? nextElapsed : nextShown;

  function nextShown(afterMs: number): number | undefined {
    // No earlier time on the wall is first shown after this instant.
    let wall = cron.next(wallTime(zone, afterMs));
    while (wall !== undefined) {
      const instant = firstShown(zone, wall);
      if (instant > afterMs) return instant;
      wall = cron.next(wall);
    }
    return undefined;
  }

  function nextElapsed(afterMs: number): number | undefined {
    let from = afterMs;
    let offset = zone.offsetMs(from);
    for (;;) {
      const wall = cron.next(from + offset);
      if (wall === undefined) return undefined;
      const instant = wall - offset;
      const within = Math.min(instant, from + DAY_MS);
      if (zone.offsetMs(within) !== offset) {
        // What the clock shows once it is changed may match sooner, or not at all.
        const change = changeOf(zone, offset, from, within);
        from = change - 1;
        offset = zone.offsetMs(change);
      } else if (within === instant) {
        return instant;
      } else {
        // Nothing in between matches, however often the clock is changed there.
        from = Math.max(within, instant - 2 * DAY_MS);
        offset = zone.offsetMs(from);
      }
    }
  }
}

/** Looks back further and further: a year of ticks every second then costs no more than a minute of them. */
function newest(after: Ticks['after'], count: number, afterMs: number, untilMs: number): number[] {
  for (let lookMs = FIRST_LOOK_MS; ; lookMs *= FURTHER) {
    const fromMs = Math.max(afterMs, untilMs - lookMs);
    const found: number[] = [];
    let tick = after(fromMs);
    while (tick !== undefined && tick <= untilMs) {
      found.push(tick);
      tick = after(tick);
    }
    // Not an equality: an infinite time of the table is no number here, and equals nothing.
    if (found.length >= count || !(fromMs > afterMs)) return found.slice(-count);
  }
}
