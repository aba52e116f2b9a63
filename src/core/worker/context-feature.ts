import type { ClaimedJob } from '../queries/claim/claim-jobs.ts';
import type { QueueTables } from '../schema/create-queue-tables.ts';
import type { Database } from '../sql/executor.ts';
import type { FeatureTables } from '../sql/feature-tables.ts';
import type { BackgroundPart } from './base/background.ts';
import type { HostWorker } from './host-worker.ts';
import type { AddedContext } from './run/added-context.ts';

/** A feature that adds to the contexts of handlers. */
export interface ContextFeature extends FeatureTables {
  /** Before the worker registers. @throws QueueError where it cannot work on such a server */
  checkServer(tables: QueueTables): void;
  /** What it adds in a worker, and what it does beside the jobs there. */
  forWorker(worker: HostWorker): ContextInWorker;
  /** What it adds in `runNext`. */
  forTransaction(): AddedContext;
  /**
   * Makes due what waits for jobs that have ended, in one transaction, or a savepoint of one that has nothing
   * else to do; whether there is something to claim now.
   *
   * @param batchIds what waits for jobs of these batches alone
   */
  moveOnIn(db: Database, batchIds?: readonly number[]): Promise<boolean>;
}

export interface ContextInWorker {
  readonly added: AddedContext;
  readonly background: readonly BackgroundPart[];
  /** Fulfilled when the worker may claim: what has ended while none ran is counted, or takes too long. */
  readonly ready: Promise<void>;
  /** A job of this worker has left its queue, and that is written. */
  noteLeft(job: ClaimedJob): void;
  /** Makes due what waits for jobs that have ended, where a drain would end; whether there was anything. */
  moveOn(): Promise<boolean>;
}
