import type { Database, Handler, Queue, RanJob, Transaction } from '../../index.ts';
import { claimJobs, runInTransaction, type Transition } from '../../testing-face.ts';
import type { NextJob } from './find-next-job.ts';

/**
 * Runs one due job in a transaction of `db`, or a savepoint; `undefined` where it cannot be claimed. Unlike
 * `runNext` it takes jobs of queues with limits: one at a time is within any number of slots, and rates are
 * not kept.
 *
 * @param onDecided is told what becomes of the job, unless its handler has completed it
 */
export async function runJob(
  db: Database,
  queue: Pick<Queue, 'tables' | 'around' | 'workflows'>,
  handlers: ReadonlyMap<string, Handler>,
  { id, queue: name, group }: Pick<NextJob, 'id' | 'queue' | 'group'>,
  onDecided?: (transition: Transition) => void,
): Promise<RanJob | undefined> {
  const claim = async (tx: Transaction) => {
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
    return job === undefined || group === undefined ? job : Object.assign(job, { group });
  };
  return await runInTransaction(db, queue, handlers, claim, onDecided);
}
