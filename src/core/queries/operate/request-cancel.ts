import { type SQL, sql } from 'drizzle-orm';
import type { QueueTables } from '../../schema/create-queue-tables.ts';
import { type Executor, queryRows } from '../../sql/executor.ts';
import { REQUESTED } from '../../sql/wake-channel.ts';
import { notifyWorkers } from '../presence/notify-workers.ts';

export interface CancelRequest {
  readonly id: number;
  readonly queue: string;
  readonly reason: string;
  /** Where workers are notified; `undefined` sends no notifications. */
  readonly channel: string | undefined;
}

/**
 * Asks for the end of a held job: writes the reason to its row, where its worker finds it, as does any later
 * claim or settlement. Returns whether the job was held. The first of two requests gives the reason.
 *
 * **Under concurrency.** Never waits: it leaves a locked row alone (a claim or a settlement is under way, or
 * `complete(tx)` or `runNext` holds the job), and the caller tries again or says so. A later settlement sees
 * the request, since it changes the same row. The notification is a statement of its own: should that fail
 * outside of a transaction, the request stands, and its worker finds it a few seconds later.
 */
export async function requestCancel(
  db: Executor,
  tables: QueueTables,
  request: CancelRequest,
): Promise<boolean> {
  const rows = await queryRows(db, tables, requestCancelQuery(tables, request));
  if (rows.length === 0) return false;
  if (request.channel !== undefined) await notifyWorkers(db, tables, REQUESTED, request.channel);
  return true;
}

export function requestCancelQuery(
  { queueJobs }: QueueTables,
  { id, queue, reason }: Omit<CancelRequest, 'channel'>,
): SQL {
  return sql`
    with held as (
      select j.id from ${queueJobs} as j
      where j.queue = ${queue} and j.id = ${id} and j.worker_id is not null
      for no key update skip locked
    )
    update ${queueJobs} as j set cancel_reason = coalesce(j.cancel_reason, ${reason}::text)
    where j.queue = ${queue} and j.id = any(array(select id from held))
    returning j.id`;
}
