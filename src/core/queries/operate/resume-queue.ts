import { type SQL, sql } from 'drizzle-orm';
import type { QueueTables } from '../../schema/create-queue-tables.ts';
import { type Executor, queryRows } from '../../sql/executor.ts';
import { REQUESTED } from '../../sql/wake-channel.ts';
import { notifyWorkers } from '../presence/notify-workers.ts';

/**
 * Ends the pause of a queue; returns whether it was paused. Workers are notified on `channel` when the
 * transaction commits, unless that is `undefined`.
 *
 * **Under concurrency.** Waits for another open transaction that has just resumed the same queue. It does not
 * see a pause that another transaction has not committed yet: that pause stands.
 */
export async function resumeQueue(
  db: Executor,
  tables: QueueTables,
  resume: { readonly queue: string; readonly channel: string | undefined },
): Promise<boolean> {
  const rows = await queryRows(db, tables, resumeQueueQuery(tables, resume.queue));
  if (rows.length === 0) return false;
  if (resume.channel !== undefined) await notifyWorkers(db, tables, REQUESTED, resume.channel);
  return true;
}

export function resumeQueueQuery({ queuePauses }: QueueTables, queue: string): SQL {
  return sql`delete from ${queuePauses} as p where p.queue = ${queue} returning p.queue`;
}
