import { type SQL, sql } from 'drizzle-orm';
import type { BeginTime } from '../../../core/sql/claimed-job.ts';
import type { Value } from '../../../core/sql/kept-statement.ts';

/** A job may begin within this part of its group's window: the shorter, the more of the rate can be used. */
const PART = 40;
/** Where that is less than a worker needs as a rule, within what it needs, but no more than this part. */
const LONGEST_PART = 8;

/** How long after a claim the jobs of groups with a rate may begin, if their worker does not learn better. */
export interface StartTimes {
  /** What a worker needs as a rule, from a claim to the calls of handlers, in milliseconds. */
  readonly neededMs: number;
  /** By what the time is multiplied, since jobs began too late. */
  readonly stretch: number;
  /** Until when the jobs of a group with such a window may begin. */
  beginTime(perMs: number): BeginTime;
}

/** How long jobs may begin after the claim, in milliseconds. */
export function startWithinMs(perMs: number, { neededMs, stretch }: Omit<StartTimes, 'beginTime'>): number {
  return Math.max(perMs / PART, Math.min(perMs / LONGEST_PART, neededMs)) * stretch;
}

/** The same in SQL. */
export function startWithin(perMs: SQL, neededMs: Value<number>, stretch: Value<number>): SQL {
  const [part, longest] = [sql.raw(String(PART)), sql.raw(String(LONGEST_PART))];
  return sql`greatest(
            ${perMs}::float8 / ${part}, least(${perMs}::float8 / ${longest}, ${neededMs}::float8)
          ) * ${stretch}::float8`;
}
