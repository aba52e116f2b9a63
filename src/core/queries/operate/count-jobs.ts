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
  /** How many jobs have killed two or more workers; `undefined` where that was not counted. */
  readonly killers: number | undefined;
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

const ENDED = '(j.attempt - (j.worker_id is not null)::int4)';
const LAST_ERROR = "(j.errors -> -1 -> 'attempt')::int4";

/**
 * How many of them have left an error, at most: one each up to the last error, and no more than there are
 * errors, unless older ones are forgotten. An error of a later attempt is from before a redrive or progress,
 * which count the attempts anew.
 */
const WITH_ERROR = `least(nullif(jsonb_array_length(j.errors), ${KEPT_ERRORS}),
          case when ${LAST_ERROR} <= ${ENDED}
            then ${LAST_ERROR} else 0 end)`;

/**
 * An attempt that was spent without an error ended with its worker.
 *
 * @crossesQueues counts the jobs of all queues, or of those in a scope
 */
export function countJobsQuery({ queueJobs }: QueueTables, scope?: JobScope): SQL {
  const seen = scope === undefined ? [] : inScope(scope, 'j');
  return sql`
    select j.queue, j.kind, ${liveCounts},
      count(*) filter (where case when j.attempt < 2 then false
        else ${sql.raw(`${ENDED} - ${WITH_ERROR}`)} >= 2
        end)::float8 as killers
    from ${queueJobs} as j${seen.length === 0 ? sql`` : sql` where ${sql.join(seen, sql` and `)}`}
    group by j.queue, j.kind`;
}
