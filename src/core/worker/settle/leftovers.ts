import { transitionFor } from '../../job/transition.ts';
import { resolvesWithin } from '../../time/resolves-within.ts';
import type { Attempt } from '../run/attempt.ts';
import { Settler, type SettlerOptions } from './settle.ts';
import type { Settlement } from './settlement.ts';

/** A stop promises an end, and the worker's own row is still to be removed after this. */
const GIVE_BACK_MS = 750;
/** For the statement that is under way then: nothing is to be written after the stop. */
const LAST_ANSWER_MS = 250;

/** The attempts of one queue that the database did not let end, or begin: held until the worker stops. */
export class Leftovers {
  readonly #jobs = new Map<Attempt, Settlement>();

  add(attempt: Attempt): void {
    const transition = transitionFor({ type: 'interrupted' }, attempt.facts);
    const { id, fence } = attempt.job;
    this.#jobs.set(attempt, { id, fence, transition });
  }

  /**
   * Puts their jobs back as they were before the claim; without any it sends nothing. A locked or refused row
   * does not affect the others, and it waits at most 750 ms for a row. It goes by id and fence: a job that
   * another worker has claimed stays with that worker, and a repetition does nothing.
   * @param tooLate aborted when nothing is to be sent any more
   * @throws the database error about a row that it refuses
   */
  async giveBack(options: Omit<SettlerOptions, 'giveUp'>, tooLate: AbortSignal): Promise<void> {
    if (this.#jobs.size === 0 || tooLate.aborted) return;
    const giveUp = new AbortController();
    const end = () => giveUp.abort();
    tooLate.addEventListener('abort', end);
    const settler = new Settler({ ...options, giveUp: giveUp.signal });
    const timer = setTimeout(end, GIVE_BACK_MS);
    try {
      const settled = await Promise.allSettled([...this.#jobs.values()].map((job) => settler.settle(job)));
      for (const one of settled) if (one.status === 'rejected') throw one.reason;
    } finally {
      clearTimeout(timer);
      tooLate.removeEventListener('abort', end);
      await resolvesWithin(settler.idle(), LAST_ANSWER_MS);
    }
  }
}
