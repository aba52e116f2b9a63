import type { QueueTables } from '../schema/create-queue-tables.ts';
import type { Transaction } from '../sql/executor.ts';
import type { Holder } from '../sql/fence.ts';
import { type FinishedJob, finishJobs } from './finish-jobs.ts';
import { transactionId } from './transaction-id.ts';

/** What became of it: ended; no longer held; or not sent inside a transaction, so that nothing was done. */
export type Completion = 'completed' | 'lost' | 'outside';

/**
 * Ends one held job inside the caller's transaction, and nowhere else. When the connection is lost a driver may send what follows
 * on another, in autocommit (postgres.js 3.4.9 does: porsager/postgres#1215), and the job would be over without the writes
 * that came before it.
 *
 * A transaction is known by its id, which its first write has given it, so this costs nothing where the handler has written. Where it
 * has not, the transaction gets its id first; outside of one the id is gone with the statement that asked for it.
 *
 * **Under concurrency.** As `finishJobs`. On another connection that happens to be inside a transaction, it takes part in that one.
 */
export async function completeJob(
  tx: Transaction,
  tables: QueueTables,
  held: Holder,
  job: FinishedJob,
): Promise<Completion> {
  const ended = async () => {
    const ids = await finishJobs(tx, tables, held, [job], { onlyInTransaction: true });
    return ids.has(job.id);
  };
  if (await ended()) return 'completed';
  const id = await transactionId(tx, tables);
  if (await ended()) return 'completed';
  return id === (await transactionId(tx, tables)) ? 'lost' : 'outside';
}
