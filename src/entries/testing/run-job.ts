import { claimJobs } from '../../core/queries/claim/claim-jobs.ts';
import type { Queue } from '../../core/queue/queue.ts';
import type { Database } from '../../core/sql/executor.ts';
import type { Handler } from '../../core/worker/run/handler.ts';
import { type RanJob, runInTransaction } from '../../core/worker/run-in-transaction.ts';
import type { NextJob } from './find-next-job.ts';

/**
 * Runs one due job in a transaction of `db`, or a savepoint; `undefined` where it cannot be claimed. Unlike
 * `runNext` it takes jobs of queues with limits: one at a time is within any number of slots, and rates are
 * not kept.
 */
export async function runJob(
  db: Database,
  queue: Pick<Queue, 'tables' | 'around' | 'workflows'>,
  handlers: ReadonlyMap<string, Handler>,
  { id, queue: name, group }: Pick<NextJob, 'id' | 'queue' | 'group'>,
): Promise<RanJob | undefined> {
  return await runInTransaction(db, queue, handlers, async (tx) => {
    const [job] = await claimJobs(tx, queue.tables, {
      queue: name,
      kinds: [...handlers.keys()],
      ids: [id],
      bands: [],
      limit: 1,
      workerId: null,
      fromGoneWorkers: true,
      heedPauses: true,
    });
    return job === undefined || group === undefined ? job : { ...job, group };
  });
}
