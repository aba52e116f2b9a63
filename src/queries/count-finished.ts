import { type SQL, sql } from 'drizzle-orm';
import type { QueueTables } from '../schema/create-queue-tables.ts';
import { type Executor, queryRows } from '../sql/executor.ts';
import { inScope, type JobScope } from '../sql/job-scope.ts';

/** What ended within one minute, of the jobs whose results are kept. */
export interface FinishedMinute {
  /** Minutes before now: 0 is the current one. */
  readonly ago: number;
  readonly completed: number;
  readonly discarded: number;
  readonly cancelled: number;
  /** From due to claimed, in milliseconds; `null` where no job was claimed. */
  readonly waitMs: { readonly p50: number; readonly p95: number } | null;
  /** From claimed to finished, in milliseconds. */
  readonly runMs: { readonly p50: number; readonly p95: number } | null;
}

export interface FinishedToCount {
  readonly scope: JobScope;
  readonly minutes: number;
  /** How many of the newest results to read. */
  readonly bound: number;
}

/**
 * The results of the last minutes, by minute. Reads the newest `bound` at most.
 *
 * **Under concurrency.** A plain read of one snapshot.
 */
export async function countFinished(
  db: Executor,
  tables: QueueTables,
  finished: FinishedToCount,
): Promise<FinishedMinute[]> {
  const rows = await queryRows(db, tables, countFinishedQuery(tables, finished));
  const spread = (values: unknown) =>
    Array.isArray(values) && values[0] !== null ? { p50: Number(values[0]), p95: Number(values[1]) } : null;
  return rows.map((row) => ({
    ago: Number(row.ago),
    completed: Number(row.completed),
    discarded: Number(row.discarded),
    cancelled: Number(row.cancelled),
    waitMs: spread([row.wait_50, row.wait_95]),
    runMs: spread([row.run_50, row.run_95]),
  }));
}

export function countFinishedQuery(
  { queueResults }: QueueTables,
  { scope, minutes, bound }: FinishedToCount,
): SQL {
  const of = (state: string) => sql.raw(`(count(*) filter (where f.state = '${state}'))::float8 as ${state}`);
  const share = (fraction: string, column: string) =>
    sql.raw(`percentile_cont(${fraction}) within group (order by f.${column})`);
  return sql`
    select f.ago, ${of('completed')}, ${of('discarded')}, ${of('cancelled')},
      ${share('0.5', 'wait')} as wait_50, ${share('0.95', 'wait')} as wait_95,
      ${share('0.5', 'run')} as run_50, ${share('0.95', 'run')} as run_95
    from (
      select r.state,
        floor(date_part('epoch', statement_timestamp() - r.finished_at) / 60)::int as ago,
        greatest(date_part('epoch', r.claimed_at - r.run_at) * 1000, 0) as wait,
        date_part('epoch', r.finished_at - r.claimed_at) * 1000 as run
      from (
        select r.* from ${queueResults} as r
        where r.finished_at > statement_timestamp() - ${minutes} * interval '1 minute'
        order by r.finished_at desc limit ${bound}
      ) as r
      where ${sql.join([sql`true`, ...inScope(scope, 'r')], sql` and `)}
    ) as f
    group by f.ago order by f.ago`;
}
