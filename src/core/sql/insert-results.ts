import { type SQL, sql } from 'drizzle-orm';
import type { QueueTables } from '../schema/create-queue-tables.ts';
import { type OwnColumn, ownColumnsOf } from '../schema/own-columns.ts';
import { ownNames } from './own-values.ts';

/** What a result has that is not simply a column of its job. */
export interface ResultValues {
  readonly payload: SQL;
  readonly state: SQL;
  readonly output: SQL;
  readonly errors: SQL;
  /** @default that of the job, which was due */
  readonly runAt?: SQL;
}

/** An insert of results, up to its `from`, which is to name the rows of jobs that end `f`. */
export function insertResults(
  { queueJobs, queueResults }: QueueTables,
  { payload, state, output, errors, runAt = sql`f.run_at` }: ResultValues,
): SQL {
  const own = ownColumnsOf(queueJobs);
  return sql`
      insert into ${queueResults} (job_id, queue, kind, payload, state, output, errors, attempt, max_attempts,
        priority, weight, fence, batch_id, unique_key, group_key, metadata, worker_id, created_at, run_at,
        claimed_at, finished_at${ownNames(own)})
      select f.id, f.queue, f.kind, ${payload}, ${state}, ${output}, ${errors},
        f.attempt, f.max_attempts, f.priority, f.weight, f.fence, f.batch_id, f.unique_key, f.group_key,
        f.metadata, f.worker_id, f.created_at, ${runAt}, f.claimed_at,
        statement_timestamp()${ownNames(own, 'f.')}`;
}

/** What results have of their jobs `j`, where these leave their payloads behind. */
export function withoutPayload(own: readonly OwnColumn[]): SQL {
  return sql`j.id, j.queue, j.kind, j.errors, j.attempt, j.max_attempts, j.priority, j.weight,
      j.fence, j.batch_id, j.unique_key, j.group_key, j.metadata, j.worker_id, j.created_at, j.run_at,
      j.claimed_at${ownNames(own, 'j.')}`;
}
