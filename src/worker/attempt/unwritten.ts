import { transitionFor } from '../../job/transition.ts';
import { type RescheduledJob, rescheduleJobs } from '../../queries/reschedule-jobs.ts';
import type { QueueTables } from '../../schema/create-queue-tables.ts';
import type { Database } from '../../sql/executor.ts';
import type { Holder } from '../../sql/fence.ts';
import type { Attempt } from './attempt.ts';

/**
 * The ended attempts of one queue whose end the database did not take. Their jobs stay held until the worker
 * stops.
 */
export class Unwritten {
  readonly #jobs = new Map<Attempt, RescheduledJob>();

  add(attempt: Attempt): void {
    const transition = transitionFor({ type: 'interrupted' }, attempt.facts);
    if (transition.type !== 'reschedule')
      throw new TypeError('An interrupted attempt goes back to its place');
    const { id, fence } = attempt.job;
    this.#jobs.set(attempt, { id, fence, transition });
  }

  /**
   * Puts their jobs back as they were before the claim, in one statement; without such jobs it sends none.
   * By id and fence: a job that somebody else has claimed meanwhile stays theirs, and a repetition does
   * nothing.
   */
  async giveBack(db: Database, tables: QueueTables, held: Holder): Promise<void> {
    if (this.#jobs.size > 0) await rescheduleJobs(db, tables, held, [...this.#jobs.values()]);
  }
}
