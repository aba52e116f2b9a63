import { type SQL, sql } from 'drizzle-orm';
import type { ErrorRecord } from '../job/describe-error.ts';
import type { QueueTables } from '../schema/create-queue-tables.ts';
import { type Executor, queryRows } from './executor.ts';
import { withError, withTime } from './recorded-error.ts';

/**
 * Ends a job that nobody holds: it moves to the results as `cancelled`. Answers whether it did.
 *
 * **Under concurrency.** Against a claim, one of the two wins: a job that a claim has just locked is left alone, and a job that
 * is cancelled here no longer matches the claim. Never waits for a running job.
 */
export async function cancelJob(
  db: Executor,
  tables: QueueTables,
  job: { readonly id: number; readonly queue: string; readonly reason: ErrorRecord },
): Promise<boolean> {
  const rows = await queryRows(db, tables, cancelJobQuery(tables, job));
  return rows.length > 0;
}

export function cancelJobQuery(
  { queueJobs, queueResults }: QueueTables,
  job: { readonly id: number; readonly queue: string; readonly reason: ErrorRecord },
): SQL {
  return sql`
    with waiting as (
      select j.id from ${queueJobs} as j
      where j.queue = ${job.queue} and j.id = ${job.id} and j.worker_id is null
      for no key update skip locked
    ),
    cancelled as (
      delete from ${queueJobs} as j
      where j.queue = ${job.queue} and j.id = any(array(select id from waiting))
      returning j.*
    )
    insert into ${queueResults} (job_id, queue, kind, payload, state, errors, attempt, max_attempts, priority, fence,
      unique_key, metadata, created_at, run_at, finished_at)
    select c.id, c.queue, c.kind, c.payload, 'cancelled',
      ${withError(sql`c.errors`, sql`(${withTime(sql`${JSON.stringify(job.reason)}::text::jsonb`)})`)},
      c.attempt, c.max_attempts, c.priority, c.fence, c.unique_key, c.metadata, c.created_at, c.run_at, statement_timestamp()
    from cancelled as c
    returning job_id`;
}
