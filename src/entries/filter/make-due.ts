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
  { note, refused }: Telling<number>,
): Promise<void> {
  const jobs = (await findRunnable(db, queue.tables, ids)).sort((a, b) => a.id - b.id);
  for (const name of new Set(jobs.map((job) => job.queue))) {
    const ofQueue = jobs.filter((job) => job.queue === name).map(({ id }) => id);
    await leaveRefused(ofQueue, async (some) => note((await queue.runNowMany(db, some)).due), refused);
  }
}
