import { type SQL, sql } from 'drizzle-orm';

/** From a time on, and before another. */
export interface TimeRange {
  readonly after?: Date | undefined;
  readonly before?: Date | undefined;
}

export function timeIsWithin(column: SQL, { after, before }: TimeRange = {}): SQL[] {
  return [
    ...(after === undefined ? [] : [sql`${column} >= ${after.toISOString()}::timestamptz`]),
    ...(before === undefined ? [] : [sql`${column} < ${before.toISOString()}::timestamptz`]),
  ];
}
