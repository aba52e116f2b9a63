import { type SQL, sql } from 'drizzle-orm';
import type { QueueTables } from '../../schema/create-queue-tables.ts';
import { dateOf, epochMs, LONGEST_MS, msBetween } from '../../sql/epoch-ms.ts';
import { type Executor, queryRows } from '../../sql/executor.ts';
import { inScope, type JobScope } from '../../sql/job-scope.ts';

/** What ended within one minute, of the jobs whose results are kept. */
export interface FinishedMinute {
  /** Its beginning. */
  readonly at: Date;
  readonly completed: number;
  readonly discarded: number;
  readonly cancelled: number;
  /** From due to claimed, in milliseconds; `null` where no job was claimed. */
  readonly waitMs: { readonly p50: number; readonly p95: number } | null;
  /** From claimed to finished, in milliseconds. */
  readonly runMs: { readonly p50: number; readonly p95: number } | null;
}

/** What was counted, and how far back. */
export interface Finished {
  readonly minutes: readonly FinishedMinute[];
  /** Since when every result was read; `undefined`: all of the time. */
  readonly since: Date | undefined;
}

export interface FinishedToCount {
  readonly scope: JobScope;
  readonly minutes: number;
  /** How many of the newest results to read. */
  readonly bound: number;
}

/**
 * The results of the last minutes, by minute. Reads the newest `bound` at most, and says how far back they
 * go.
 *
 * **Under concurrency.** A plain read of one snapshot.
 */
export async function countFinished(
  db: Executor,
  tables: QueueTables,
  finished: FinishedToCount,
): Promise<Finished> {
  const rows = await queryRows(db, tables, countFinishedQuery(tables, finished));
  const spread = (values: unknown) =>
    Array.isArray(values) && values[0] !== null ? { p50: Number(values[0]), p95: Number(values[1]) } : null;
  const read = rows.reduce((sum, row) => sum + Number(row.read), 0);
  const oldestMs = Math.min(...rows.map((row) => dateOf(row.since).getTime()));
  return {
    minutes: rows.map((row) => ({
      at: dateOf(row.at),
      completed: Number(row.completed),
      discarded: Number(row.discarded),
      cancelled: Number(row.cancelled),
      waitMs: spread([row.wait_50, row.wait_95]),
      runMs: spread([row.run_50, row.run_95]),
    })),
    since: read < finished.bound ? undefined : new Date(oldestMs),
  };
}

export function countFinishedQuery(
  { queueResults }: QueueTables,
  { scope, minutes, bound }: FinishedToCount,
): SQL {
  const of = (state: string) =>
    sql.raw(`(count(*) filter (where f.seen and f.state = '${state}'))::float8 as ${state}`);
  const share = (fraction: string, column: string) =>
    sql.raw(`percentile_cont(${fraction}) within group (order by f.${column}) filter (where f.seen)`);
  return sql`
    select f.at, count(*)::float8 as read, ${epochMs('min(f.finished_at)')} as since,
      ${of('completed')}, ${of('discarded')}, ${of('cancelled')},
      ${share('0.5', 'wait')} as wait_50, ${share('0.95', 'wait')} as wait_95,
      ${share('0.5', 'run')} as run_50, ${share('0.95', 'run')} as run_95
    from (
      select r.state, r.finished_at, ${sql.join([sql`true`, ...inScope(scope, 'r')], sql` and `)} as seen,
        floor(date_part('epoch', r.finished_at) / 60) * 60000 as at,
        least(greatest(${msBetween('r.run_at', 'r.claimed_at')}, 0), ${sql.raw(String(LONGEST_MS))}) as wait,
        date_part('epoch', r.finished_at - r.claimed_at) * 1000 as run
      from (
        select r.* from ${queueResults} as r
        where r.finished_at > statement_timestamp() - ${minutes} * interval '1 minute'
        order by r.finished_at desc limit ${bound}
      ) as r
    ) as f
    group by f.at order by f.at`;
}
