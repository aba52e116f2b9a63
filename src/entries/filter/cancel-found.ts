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
    for (const each of states) {
      let told = { cancelled: 0, requested: 0, locked: 0 };
      const onProgress = ({ cancelled, requested, locked }: CancelManyResult) => {
        note({
          cancelled: cancelled - told.cancelled,
          requested: requested - told.requested,
          locked: locked - told.locked,
        });
        told = { cancelled, requested, locked };
      };
      const which = { ids: some, ...(each !== undefined && { state: each }) };
      onProgress(await queue.cancelMany(db, which, { ...options, onProgress }));
    }
  };
  await leaveRefused(ids, cancel, telling);
}
