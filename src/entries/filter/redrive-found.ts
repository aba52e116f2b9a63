import type { Executor, Queue, RedriveFilter, RedriveResult } from '../../index.ts';
import { leaveRefused, type Telling } from './leave-refused.ts';

/** Puts back jobs that a search has found. */
export async function redriveFound(
  queue: Pick<Queue, 'redrive'>,
  db: Executor,
  {
    ids,
    ...which
  }: Pick<RedriveFilter, 'queue' | 'state' | 'finishedBefore'> & {
    readonly ids: readonly number[];
  },
  { note, ...telling }: Telling<RedriveResult>,
): Promise<void> {
  const redrive = async (some: readonly number[]) => {
    let told = { redriven: 0, duplicates: 0 };
    // Citus commits it queue by queue, and may refuse a job of the second.
    const onProgress = (sums: RedriveResult) => {
      note({ redriven: sums.redriven - told.redriven, duplicates: sums.duplicates - told.duplicates });
      told = sums;
    };
    await queue.redrive(db, { ...which, ids: some }, { onProgress });
  };
  await leaveRefused(ids, redrive, telling);
}
