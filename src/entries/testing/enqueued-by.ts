import type { OwnColumns } from '../../core/schema/index.ts';
import type { Executor, JobDefinition, JobRecordOf, Queue } from '../../index.ts';
import { checkDefinition } from '../../internal.ts';
import { checkQueue } from './check-queue.ts';
import { findWrittenJobs, highestId } from './find-written-jobs.ts';
import { isTransaction } from './written-here.ts';

/**
 * The jobs that a function has enqueued, live or finished, in their order; with a definition only those of
 * its kind, typed. A job that was refused as a duplicate, or that replaced a waiting one, is not among them:
 * it is not a new job. Nor is a completed job whose kind keeps no result.
 *
 * ```ts
 * const jobs = await enqueuedBy(tx, queue, () => placeOrder(tx, cart));
 * ```
 *
 * Under concurrency: in a transaction they are its own, whatever others enqueue and commit meanwhile. With a
 * database instead, theirs are among them.
 *
 * @throws what the function throws
 */
export async function enqueuedBy<TOwn extends OwnColumns, TJob extends JobDefinition = JobDefinition>(
  db: Executor,
  queue: Queue<TOwn>,
  run: () => unknown,
  job?: TJob,
): Promise<JobRecordOf<TJob, TOwn['select']>[]> {
  checkQueue('enqueuedBy', queue);
  if (typeof run !== 'function') throw new TypeError('enqueuedBy takes a function after the queue');
  if (job !== undefined) checkDefinition('enqueuedBy', job);
  const { tables } = queue;
  const after = await highestId(db, tables);
  await run();
  const written = isTransaction(db);
  const found = await findWrittenJobs(db, tables, { kind: job?.kind, after, written });
  // Payload and output are stored as the input of the definition's schemas, and the kind was asked for.
  return found as JobRecordOf<TJob, TOwn['select']>[];
}
