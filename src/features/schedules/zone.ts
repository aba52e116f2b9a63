import { shown } from '../../core/job/shown.ts';

/* Wall-clock times are written as if they were UTC: 03:00 on a wall is 03:00 UTC of the same day. */

/** The clock on the walls of a time zone. */
export interface Zone {
  /** What the clock shows at an instant, less that instant, in milliseconds. */
  offsetMs(instantMs: number): number;
}

const UTC: Zone = { offsetMs: () => 0 };

/** Larger than any offset, and shorter than the time between two changes of one clock. */
export const DAY_MS = 86_400_000;

/** Making one takes longer than all that is asked of it for one schedule. */
const known = new Map<string, Zone>([['UTC', UTC]]);
/** There are about 600 names, but their case is free. */
const MAX_KNOWN = 1_000;

/** @throws TypeError when this runtime does not know the zone */
export function zoneOf(what: string, timeZone: string): Zone {
  const found = known.get(timeZone);
  if (found !== undefined) return found;
  const zone: Zone = { offsetMs: offsetsOf(what, timeZone) };
  if (known.size < MAX_KNOWN) known.set(timeZone, zone);
  return zone;
}

function offsetsOf(what: string, timeZone: string): Zone['offsetMs'] {
  let format: Intl.DateTimeFormat;
  try {
    if (typeof timeZone !== 'string') throw new RangeError();
    format = new Intl.DateTimeFormat('en-US-u-ca-gregory-nu-latn', {
      timeZone,
      hourCycle: 'h23',
      year: 'numeric',
      month: 'numeric',
      day: 'numeric',
      hour: 'numeric',
      minute: 'numeric',
      second: 'numeric',
    });
  } catch {
    throw new TypeError(
      `${what} must be a time zone that this runtime knows, such as 'Europe/Vienna'; got ${shown(timeZone)}`,
    );
  }
  return (instantMs) => {
    const wholeMs = Math.floor(instantMs / 1_000) * 1_000;
    const [month = 0, day, year = 0, hour, minute, second] = (format.format(wholeMs).match(/\d+/g) ?? []).map(
      Number,
    );
    return Date.UTC(year, month - 1, day, hour, minute, second) - wholeMs;
  };
}

/** What the clock of a zone shows. */
export function wallTime(zone: Zone, instantMs: number): number {
  return instantMs + zone.offsetMs(instantMs);
}

/**
 * When a clock first shows a time: the first of two instants where it is set back over that time, and the end
 * of the gap where it is set forward over it.
 */
export function firstShown(zone: Zone, wallMs: number): number {
  const before = zone.offsetMs(wallMs - DAY_MS);
  const after = zone.offsetMs(wallMs + DAY_MS);
  // With the larger offset first, the earlier instant is found first.
  for (const offset of [Math.max(before, after), Math.min(before, after)]) {
    const instant = wallMs - offset;
    if (zone.offsetMs(instant) === offset) return instant;
  }
  return changeOf(zone, before, wallMs - Math.max(before, after), wallMs - Math.min(before, after));
}

/** The first instant after one and up to another at which the offset is not this one any more. */
export function changeOf(zone: Zone, offset: number, afterMs: number, untilMs: number): number {
  let low = afterMs;
  let high = untilMs;
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2);
    if (zone.offsetMs(middle) === offset) low = middle;
    else high = middle;
  }
  return high;
}
