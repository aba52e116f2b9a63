import { type SQL, sql } from 'drizzle-orm';
import type { QueueTables } from '../../schema/create-queue-tables.ts';
import { queryRows, type Runner } from '../../sql/executor.ts';
import { inScope, type JobScope } from '../../sql/job-scope.ts';
import { failedJobs, isRetrying } from '../../sql/retrying.ts';

/** The jobs of one kind in one queue that have failed and wait for their next attempt. */
export interface RetryingKind {
  readonly queue: string;
  readonly kind: string;
  readonly jobs: number;
}

/** How many jobs wait for their next attempt after a failed one. */
export interface CountedRetrying {
  readonly kinds: readonly RetryingKind[];
  /** Whether counting has stopped before all failed jobs were read. */
  readonly isLeast: boolean;
}

/** So many jobs that have failed are read. */
export const COUNTED_RETRYING = 10_000;

/**
 * Counts the jobs that have failed and wait for their next attempt, by queue and kind. It reads the failed
 * jobs by an index, {@link COUNTED_RETRYING} at most, however many others there are.
 *
 * **Under concurrency.** A plain read of one snapshot.
 */
export async function countRetrying(
  db: Runner,
  tables: QueueTables,
  scope?: JobScope,
): Promise<CountedRetrying> {
  const rows = await queryRows(db, tables, countRetryingQuery(tables, scope));
  const read = rows.reduce((sum, row) => sum + Number(row.read), 0);
  return {
    kinds: rows
      .map((row) => ({ queue: String(row.queue), kind: String(row.kind), jobs: Number(row.jobs) }))
      .filter(({ jobs }) => jobs > 0),
    isLeast: read >= COUNTED_RETRYING,
  };
}

/** @crossesQueues counts the failed jobs of all queues, or of those in a scope */
export function countRetryingQuery(tables: QueueTables, scope?: JobScope): SQL {
  const seen = sql.join([isRetrying, ...(scope === undefined ? [] : inScope(scope, 'j'))], sql` and `);
  return sql`
    select j.queue, j.kind, count(*)::float8 as read, (count(*) filter (where ${seen}))::float8 as jobs
    from ${failedJobs(tables, COUNTED_RETRYING)} as j
    group by j.queue, j.kind order by jobs desc, j.queue, j.kind`;
}
