import { type SQL, sql } from 'drizzle-orm';
import { KEPT_ERRORS } from '../../schema/attempt-error.ts';
import type { QueueTables } from '../../schema/create-queue-tables.ts';
import { queryRows, type Runner } from '../../sql/executor.ts';
import { inScope, type JobScope } from '../../sql/job-scope.ts';
import { type LiveCount, liveCounts, toLiveCount } from '../../sql/live-counts.ts';

/** The live jobs of one kind in one queue. */
export interface CountedKind extends LiveCount {
  readonly queue: string;
  readonly kind: string;
  /** How many jobs have killed two or more workers; 0 where that was not counted. */
  readonly killers: number;
}

/**
 * Counts all live jobs, or those in a scope, by queue and kind. It reads the whole table: see `withinTime`.
 *
 * **Under concurrency.** A plain read of one snapshot.
 */
export async function countJobs(db: Runner, tables: QueueTables, scope?: JobScope): Promise<CountedKind[]> {
  const rows = await queryRows(db, tables, countJobsQuery(tables, scope));
  return rows.map((row) => ({
    queue: String(row.queue),
    kind: String(row.kind),
    ...toLiveCount(row),
    killers: Number(row.killers),
  }));
}

/**
 * An attempt that was spent without an error ended with its worker; of older errors some are forgotten.
 *
 * @crossesQueues counts the jobs of all queues, or of those in a scope
 */
export function countJobsQuery({ queueJobs }: QueueTables, scope?: JobScope): SQL {
  const seen = scope === undefined ? [] : inScope(scope, 'j');
  return sql`
    select j.queue, j.kind, ${liveCounts},
      count(*) filter (where case when j.attempt < 2 then false
        when jsonb_array_length(j.errors) >= ${sql.raw(String(KEPT_ERRORS))} then false
        else j.attempt - (j.worker_id is not null)::int4 - jsonb_array_length(j.errors) >= 2
        end)::float8 as killers
    from ${queueJobs} as j${seen.length === 0 ? sql`` : sql` where ${sql.join(seen, sql` and `)}`}
    group by j.queue, j.kind`;
}
