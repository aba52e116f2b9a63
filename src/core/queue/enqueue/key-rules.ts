import type { NewJob } from '../../job/new-job.ts';
import type { QueueTables } from '../../schema/create-queue-tables.ts';
import type { Executor } from '../../sql/executor.ts';
import type { LimitedEnqueueResult } from './enqueue-jobs.ts';
import type { WakeUps } from './wake-ups.ts';

/** What inserts jobs, and returns what became of each, in input order. */
export type Insert = (db: Executor, jobs: readonly NewJob[]) => Promise<LimitedEnqueueResult[]>;

/** What enqueues jobs that have a rule for their key, such as `debounce`. */
export interface KeyRules {
  /**
   * What inserts these jobs, of which at least one has a rule.
   *
   * @throws TypeError when they do not all follow one rule, or it needs a table that the queue lacks
   */
  inserting(
    jobs: readonly NewJob[],
    queue: { readonly tables: QueueTables; readonly wakeUps: WakeUps | undefined },
  ): Promise<Insert>;
}
