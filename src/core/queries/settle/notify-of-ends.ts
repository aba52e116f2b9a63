import type { QueueTables } from '../../schema/create-queue-tables.ts';
import { endChannel, endNotices } from '../../sql/end-notice.ts';
import type { Runner } from '../../sql/executor.ts';
import { notifyWorkers } from '../presence/notify-workers.ts';

/**
 * Notifies the waiters of these jobs that the jobs have ended.
 *
 * **Under concurrency.** Sent after the end has committed, or in its transaction: a listener that hears the
 * notice sees the end. It is a separate statement, not part of the one that ends the jobs, for two reasons.
 * On Citus that one runs on the node of the rows, where no process listens. And without a request for
 * notices, workers send the same statements as before.
 */
export async function notifyOfEnds(db: Runner, tables: QueueTables, ids: readonly number[]): Promise<void> {
  const channel = endChannel(tables);
  for (const notice of endNotices(ids)) await notifyWorkers(db, tables, notice, channel);
}
