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
    let told = 0;
    // Citus commits it queue by queue, and may refuse a job of the second.
    const onProgress = ({ redriven }: RedriveResult) => {
      note({ redriven: redriven - told, duplicates: 0 });
      told = redriven;
    };
    const { duplicates } = await queue.redrive(db, { ...which, ids: some }, { onProgress });
    // Not before its end: a half that is tried again finds them again.
    note({ redriven: 0, duplicates });
  };
  await leaveRefused(ids, redrive, telling);
}
