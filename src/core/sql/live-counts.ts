import { type SQL, sql } from 'drizzle-orm';
import { msBetween, msOf } from './epoch-ms.ts';
import type { RawRow } from './executor.ts';

/** How many of some live jobs there are, by state. */
export interface LiveCount {
  readonly due: number;
  readonly grouped: number;
  readonly running: number;
  readonly scheduled: number;
  readonly waiting: number;
  readonly oldestDueMs: number | undefined;
}

export const NO_JOBS: LiveCount = {
  due: 0,
  grouped: 0,
  running: 0,
  scheduled: 0,
  waiting: 0,
  oldestDueMs: undefined,
};

const IS_DUE = 'j.worker_id is null and j.run_at <= statement_timestamp()';

/** Counts of live jobs `j`, as {@link toLiveCount} reads them. */
export const liveCounts: SQL = sql`count(*) filter (where ${sql.raw(IS_DUE)})::float8 as due,
      count(*) filter (where ${sql.raw(IS_DUE)} and j.group_key is not null)::float8 as grouped,
      count(*) filter (where j.worker_id is not null)::float8 as running,
      count(*) filter (where j.worker_id is null and j.run_at > statement_timestamp()
        and j.run_at < 'infinity')::float8 as scheduled,
      count(*) filter (where j.worker_id is null and j.run_at = 'infinity')::float8 as waiting,
      ${msBetween(`min(j.run_at) filter (where ${IS_DUE})`, 'statement_timestamp()')} as oldest_due_ms`;

export function toLiveCount(row: RawRow): LiveCount {
  return {
    due: Number(row.due),
    grouped: Number(row.grouped),
    running: Number(row.running),
    scheduled: Number(row.scheduled),
    waiting: Number(row.waiting),
    oldestDueMs: row.oldest_due_ms === null ? undefined : Math.max(0, msOf(row.oldest_due_ms)),
  };
}
