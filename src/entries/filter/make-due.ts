import type { Executor, Queue } from '../../index.ts';
import { findRunnable } from '../../internal.ts';
import { leaveRefused, type Telling } from './leave-refused.ts';

/**
 * Makes jobs due, queue by queue: what is done in one is not undone where the database refuses a job of the
 * next, and workers may claim it at once. Tells how many are due.
 */
export async function makeDue(
  queue: Pick<Queue, 'runNowMany' | 'tables'>,
  db: Executor,
  ids: readonly number[],
  { note, ...telling }: Telling<number>,
): Promise<void> {
  const jobs = (await findRunnable(db, queue.tables, ids)).sort((a, b) => a.id - b.id);
  const queues = new Map(jobs.map((job) => [job.id, job.queue]));
  const makeDue = async (some: readonly number[]) => {
    for (const name of new Set(some.flatMap((id) => queues.get(id) ?? []))) {
      const ofQueue = some.filter((id) => queues.get(id) === name);
      note((await queue.runNowMany(db, ofQueue)).due);
      // A half that is tried again must not count them twice.
      for (const id of ofQueue) queues.delete(id);
    }
  };
  await leaveRefused([...queues.keys()], makeDue, telling);
}
