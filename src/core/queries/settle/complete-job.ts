import type { QueueTables } from '../../schema/create-queue-tables.ts';
import type { Transaction } from '../../sql/executor.ts';
import type { Holder } from '../../sql/fence.ts';
import { type CompletedJob, completeOneJob } from './complete-one-job.ts';
import { type FinishedJob, finishJobs } from './finish-jobs.ts';
import { transactionId } from './transaction-id.ts';

/**
 * `outside`: the statement did not run inside a transaction, so it did nothing. `lost`: the jobs that this
 * worker no longer holds; the others have ended, if the transaction commits all the same.
 */
export type CompletionResult = 'completed' | 'outside' | { readonly lost: readonly FinishedJob[] };

/**
 * Ends held jobs of one queue inside the caller's transaction, and nowhere else. After the loss of a
 * connection a driver may run the following statements on another one, in autocommit (postgres.js 3.4.9 does:
 * porsager/postgres#1215); the jobs would then end without the writes before it.
 *
 * A transaction has an id from its first write on, so the check costs nothing when the handler has written
 * something. Otherwise the transaction gets its id first; outside a transaction that id is gone with its
 * statement.
 *
 * **Under concurrency.** As `finishJobs`. On another connection that happens to be inside a transaction, it
 * is part of that transaction.
 */
export async function completeJobs(
  tx: Transaction,
  tables: QueueTables,
  holder: Holder,
  jobs: readonly FinishedJob[],
): Promise<CompletionResult> {
  const one = onlyCompleted(jobs);
  const end = async () => {
    if (one !== undefined) {
      const some = await completeOneJob(tx, tables, holder, one);
      return { some, lost: some ? [] : jobs };
    }
    const ended = await finishJobs(tx, tables, holder, jobs, { onlyInTransaction: true });
    return { some: ended.size > 0, lost: jobs.filter(({ id }) => !ended.has(id)) };
  };
  const first = await end();
  if (first.lost.length === 0) return 'completed';
  if (first.some) return { lost: first.lost };
  const id = await transactionId(tx, tables);
  const { some, lost } = await end();
  if (lost.length === 0) return 'completed';
  return some || id === (await transactionId(tx, tables)) ? { lost } : 'outside';
}

/** `null` is the output of a handler that gives none; where no result is kept, none is written. */
function onlyCompleted([only, ...others]: readonly FinishedJob[]): CompletedJob | undefined {
  if (only === undefined || others.length > 0 || only.transition.state !== 'completed') return undefined;
  const { id, fence, transition } = only;
  const { output, keepResult } = transition;
  const isWritten = keepResult !== false && output !== null && output !== 'null';
  return { id, fence, keepResult, output: isWritten ? output : undefined };
}
