import { type SQL, sql } from 'drizzle-orm';
import type { QueueTables } from '../../schema/create-queue-tables.ts';
import { type Executor, queryRows } from '../../sql/executor.ts';
import { type JobsThatFit, lockThatFit } from '../../sql/jobs-that-fit.ts';

export interface JobsCancelRequest extends JobsThatFit {
  readonly reason: string;
}

/**
 * Requests the end of held jobs whose end has not been requested yet. Returns their ids. Their workers find
 * the request by polling, or the caller notifies them.
 *
 * **Under concurrency.** As with `requestCancel`: a locked row is left alone.
 */
export async function requestCancels(
  db: Executor,
  tables: QueueTables,
  request: JobsCancelRequest,
): Promise<number[]> {
  const rows = await queryRows(db, tables, requestCancelsQuery(tables, request));
  return rows.map(({ id }) => Number(id));
}

export function requestCancelsQuery(tables: QueueTables, { reason, ...jobs }: JobsCancelRequest): SQL {
  const held = [sql`j.worker_id is not null and j.cancel_reason is null`];
  return sql`
    with held as materialized (${lockThatFit(tables, jobs, held)}
    )
    update ${tables.queueJobs} as j set cancel_reason = ${reason}::text
    where j.queue = ${jobs.queue} and j.id = any(array(select id from held))
    returning j.id`;
}
