/**
 * What the main entry would be if the core were all there is, with the names of the public API. It is compiled beside a
 * copy of the core, so it imports nothing else.
 */

import { Queue } from '../../src/core/queue/queue.ts';
import type { QueueParts } from '../../src/core/queue/queue-features.ts';
import { queueJobs, queuePauses, queueResults, queueWorkers } from '../../src/core/schema/index.ts';
import type { Database } from '../../src/core/sql/executor.ts';
import { type DrainResult, drainBy } from '../../src/core/worker/drain.ts';
import type { PlainWorkerOptions } from '../../src/core/worker/options.ts';
import { Worker } from '../../src/core/worker/worker.ts';

export { fixedBackoff } from '../../src/core/job/backoff.ts';
export { defineJob } from '../../src/core/job/definition.ts';
export { snooze } from '../../src/core/job/outcome.ts';
export { unvalidated } from '../../src/core/job/standard-schema.ts';
export { handle } from '../../src/core/worker/run/handler.ts';
export { runNext } from '../../src/core/worker/run-next.ts';
export { InvalidPayloadError, NonRetryableError } from '../../src/errors.ts';

export function createQueue(parts: QueueParts = {}): Queue {
  return new Queue({ queueJobs, queueResults, queueWorkers, queuePauses }, parts);
}

export function createWorker(db: Database, options: PlainWorkerOptions<Database>): Worker {
  return new Worker(db, options);
}

export async function drain(
  db: Database,
  { deadlineMs, ...options }: PlainWorkerOptions<Database> & { readonly deadlineMs: number },
): Promise<DrainResult> {
  const worker = new Worker(db, { ...options, shutdownTimeoutMs: 0 }, { until: 'empty' });
  return await drainBy(worker, { deadlineMs });
}
