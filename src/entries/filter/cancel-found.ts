import type { CancelManyOptions, CancelManyResult, Executor, LiveState, Queue } from '../../index.ts';
import { isLiveState, type JobSearch } from '../../internal.ts';

/** A job that is `retrying` is one of these. In this order: it may become due in between. */
const RETRYING: readonly LiveState[] = ['scheduled', 'due'];

/** Cancels jobs that a search has found, in its state only: one that was found due may run by now. */
export async function cancelFound(
  queue: Pick<Queue, 'cancelMany'>,
  db: Executor,
  { ids, state }: Pick<JobSearch, 'state'> & { readonly ids: readonly number[] },
  options: CancelManyOptions,
): Promise<CancelManyResult> {
  const states = state === 'retrying' ? RETRYING : [isLiveState(state) ? state : undefined];
  const sums = { cancelled: 0, requested: 0, locked: 0 };
  for (const each of states) {
    const which = { ids, ...(each !== undefined && { state: each }) };
    const { cancelled, requested, locked } = await queue.cancelMany(db, which, options);
    sums.cancelled += cancelled;
    sums.requested += requested;
    sums.locked += locked;
  }
  return sums;
}
