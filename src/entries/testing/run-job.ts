import type { Database, Handler, Queue, RanJob } from '../../index.ts';
import { claimJobs, runInTransaction } from '../../internal.ts';
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
