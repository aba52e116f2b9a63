import { type SQL, sql } from 'drizzle-orm';
import type { AttemptError } from '../../schema/attempt-error.ts';
import type { QueueTables } from '../../schema/create-queue-tables.ts';
import type { FinalState } from '../../schema/queue-results.ts';
import { queryRows, type RawRow, type Runner } from '../../sql/executor.ts';
import { type HeldJob, idsAndFences } from '../../sql/fence.ts';

export interface JobFate {
  readonly fence: number;
  readonly attempt: number;
  /** How it has ended; `null` while it is live. */
  readonly state: FinalState | null;
  /** Whether a worker holds it, or held it when it ended. */
  readonly held: boolean;
  /** Why its end was asked for, while it is live. */
  readonly cancelReason: string | null;
  readonly errors: readonly AttemptError[];
}

/**
 * Where jobs of one queue are now, by id. One that is nowhere has ended without a result, or its result was
 * pruned.
 *
 * **Under concurrency.** A plain read of one snapshot: a job that is just ending is found in one of the two
 * tables. The result may be out of date when it arrives: use it only to tell what has happened.
 */
export async function findFates(
  db: Runner,
  tables: QueueTables,
  queue: string,
  jobs: readonly HeldJob[],
): Promise<Map<number, JobFate>> {
  const rows = await queryRows(db, tables, findFatesQuery(tables, queue, jobs));
  return new Map(rows.map((row) => [Number(row.id), toFate(row)]));
}

/** `limit 1`: each job is looked up by its key; a join could become one that reads the whole table. */
export function findFatesQuery(
  { queueJobs, queueResults }: QueueTables,
  queue: string,
  jobs: readonly HeldJob[],
): SQL {
  return sql`
    select i.id, coalesce(j.fence, r.fence) as fence, coalesce(j.attempt, r.attempt) as attempt, r.state,
      coalesce(j.worker_id, r.worker_id) is not null as held, j.cancel_reason,
      coalesce(j.errors, r.errors) as errors
    from rows from (${idsAndFences(jobs)}) as i(id, fence)
    left join lateral (
      select j.fence, j.attempt, j.worker_id, j.cancel_reason, j.errors from ${queueJobs} as j
      where j.queue = ${queue} and j.id = i.id limit 1
    ) as j on true
    left join lateral (
      select r.fence, r.attempt, r.worker_id, r.state, r.errors from ${queueResults} as r
      where j.fence is null and r.queue = ${queue} and r.job_id = i.id limit 1
    ) as r on true
    where j.fence is not null or r.fence is not null`;
}

function toFate(row: RawRow): JobFate {
  return {
    fence: Number(row.fence),
    attempt: Number(row.attempt),
    // The column has a CHECK, and the errors are written by us alone.
    state: (row.state ?? null) as FinalState | null,
    held: row.held === true,
    cancelReason: row.cancel_reason === null ? null : String(row.cancel_reason),
    errors: row.errors as AttemptError[],
  };
}
