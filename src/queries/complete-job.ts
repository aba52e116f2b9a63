import type { QueueTables } from '../schema/create-queue-tables.ts';
import type { Transaction } from '../sql/executor.ts';
import type { Holder } from '../sql/fence.ts';
import { type FinishedJob, finishJobs } from './finish-jobs.ts';
import { transactionId } from './transaction-id.ts';

/** `outside`: the statement did not run inside a transaction, so it did nothing. */
export type Completion = 'completed' | 'lost' | 'outside';

/**
 * Ends one held job inside the caller's transaction, and nowhere else. After the loss of a connection a
 * driver may run the following statements on another one, in autocommit (postgres.js 3.4.9 does:
 * porsager/postgres#1215); the job would then end without the writes before it.
 *
 * A transaction has an id from its first write on, so the check costs nothing when the handler has written
 * something. Otherwise the transaction gets its id first; outside a transaction that id is gone with its
 * statement.
 *
 * **Under concurrency.** As `finishJobs`. On another connection that happens to be inside a transaction, it
 * is part of that transaction.
 */
export async function completeJob(
  tx: Transaction,
  tables: QueueTables,
  holder: Holder,
  job: FinishedJob,
): Promise<Completion> {
  const ended = async () => {
    const ids = await finishJobs(tx, tables, holder, [job], { onlyInTransaction: true });
    return ids.has(job.id);
  };
  if (await ended()) return 'completed';
  const id = await transactionId(tx, tables);
  if (await ended()) return 'completed';
  return id === (await transactionId(tx, tables)) ? 'lost' : 'outside';
}
