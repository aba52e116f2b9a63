import type { CancelManyOptions, CancelManyResult, Executor, LiveState, Queue } from '../../index.ts';
import { isLiveState, type JobSearch } from '../../internal.ts';
import { leaveRefused, type Telling } from './leave-refused.ts';

/** A job that is `retrying` is one of these. In this order: it may become due in between. */
const RETRYING: readonly LiveState[] = ['scheduled', 'due'];

/** Cancels jobs that a search has found, in its state only: one that was found due may run by now. */
export async function cancelFound(
  queue: Pick<Queue, 'cancelMany'>,
  db: Executor,
  { ids, state }: Pick<JobSearch, 'state'> & { readonly ids: readonly number[] },
  options: Pick<CancelManyOptions, 'reason' | 'force'>,
  { note, ...telling }: Telling<CancelManyResult>,
): Promise<void> {
  const states = state === 'retrying' ? RETRYING : [isLiveState(state) ? state : undefined];
  const cancel = async (some: readonly number[]) => {
    let locked = 0;
    for (const each of states) {
      let told = { cancelled: 0, requested: 0 };
      const onProgress = (sums: CancelManyResult) => {
        const { cancelled, requested } = sums;
        note({ cancelled: cancelled - told.cancelled, requested: requested - told.requested, locked: 0 });
        told = sums;
      };
      const which = { ids: some, ...(each !== undefined && { state: each }) };
      locked += (await queue.cancelMany(db, which, { ...options, onProgress })).locked;
    }
    // Not before its end: a half that is tried again finds them again.
    note({ cancelled: 0, requested: 0, locked });
  };
  await leaveRefused(ids, cancel, telling);
}
