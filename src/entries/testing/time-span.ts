import { sql } from 'drizzle-orm';
import type { QueueTables } from '../../core/schema/index.ts';
import type { Executor } from '../../index.ts';
import { checkOptions, namesOf, queryRows } from '../../internal.ts';
import { checkDate, checkDurationMs, epochMs, MAX_DELAY_MS } from '../../testing-face.ts';

/** A length of time: the sum of its parts, 0 to a century; `travel` takes no 0. */
export interface TimeSpan {
  days?: number | undefined;
  hours?: number | undefined;
  minutes?: number | undefined;
  seconds?: number | undefined;
  ms?: number | undefined;
}

const SPAN = namesOf<TimeSpan>({ days: true, hours: true, minutes: true, seconds: true, ms: true });

/** @throws TypeError | RangeError unless each part is a number of its unit, not negative */
export function spanMs(what: string, span: TimeSpan): number {
  const { days = 0, hours = 0, minutes = 0, seconds = 0, ms = 0 } = checkOptions(what, span, SPAN);
  const parts = [days * 86_400_000, hours * 3_600_000, minutes * 60_000, seconds * 1_000, ms];
  return parts.reduce((sum, part) => checkDurationMs(what, sum + checkDurationMs(what, part)), 0);
}

/** @throws RangeError unless it is a time to come, too */
export function checkSpanMs(what: string, span: TimeSpan): number {
  return checkDurationMs(what, spanMs(what, span), 1, MAX_DELAY_MS);
}

/** A time by the database's clock, or as long from now as a span; now for a time that has passed. */
export async function timeOf(
  what: string,
  db: Executor,
  tables: QueueTables,
  until: Date | TimeSpan,
): Promise<{ readonly nowMs: number; readonly untilMs: number }> {
  if (until instanceof Date) checkDate(what, until);
  const aheadMs = until instanceof Date ? undefined : spanMs(what, until);
  const [row] = await queryRows(db, tables, sql`select ${epochMs('statement_timestamp()')} as now_ms`);
  const nowMs = Number(row?.now_ms);
  // Postgres has no times as long before now as a date may be after it.
  const restMs = checkDurationMs(what, aheadMs ?? Math.max(Number(until) - nowMs, 0));
  return { nowMs, untilMs: nowMs + restMs };
}
