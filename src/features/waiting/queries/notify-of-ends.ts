import { notifyWorkers } from '../../../core/queries/presence/notify-workers.ts';
import type { QueueTables } from '../../../core/schema/create-queue-tables.ts';
import type { Runner } from '../../../core/sql/executor.ts';
import { endChannel, endNotices } from '../sql/end-notice.ts';

/**
 * Notifies those who wait for these jobs that they have ended.
 *
 * **Under concurrency.** Sent after the end has committed, or in its transaction: whoever hears it sees the
 * end. A statement of its own, apart from the one that ends the jobs: on Citus that one runs on the node of
 * the rows, where nobody listens; and who does not ask for notices sends what it sends without them.
 */
export async function notifyOfEnds(db: Runner, tables: QueueTables, ids: readonly number[]): Promise<void> {
  const channel = endChannel(tables);
  for (const notice of endNotices(ids)) await notifyWorkers(db, tables, notice, channel);
}
