import { QueueError } from '../errors.ts';
import { mayBeDue, type NewJob } from '../job/new-job.ts';
import { findStandingJobs } from '../queries/find-standing-jobs.ts';
import { insertJobs } from '../queries/insert-jobs.ts';
import type { QueueTables } from '../schema/index.ts';
import type { Executor } from '../sql/executor.ts';
import { faultPoint } from '../sql/fault-point.ts';
import type { WakeUps } from './wake-ups.ts';

/** The result of an enqueue. */
export interface EnqueueResult {
  /** The job's id; for a `duplicate`, the id of the live job with its key. */
  readonly id: number;
  /** Whether the job was refused because a live job of its kind has its `uniqueKey`. */
  readonly duplicate: boolean;
}

/** How often an enqueue with a unique key tries again when the job with its key finishes in between. */
const MAX_INSERTS = 10;

/**
 * Inserts, and notifies the workers as `wakeUps` allows. Where a live job has the unique key, it finds that
 * job; where that job has just finished, it inserts again. Returns in input order.
 *
 * @throws QueueError when a live job with the same key comes and goes at every try, or cannot be seen
 */
export async function enqueueJobs(
  db: Executor,
  tables: QueueTables,
  jobs: readonly NewJob[],
  wakeUps: WakeUps | undefined,
): Promise<EnqueueResult[]> {
  const answers = new Array<EnqueueResult>(jobs.length);
  let open = jobs.map((job, index) => ({ job, index }));
  for (let tries = 0; open.length > 0; tries++) {
    if (tries === MAX_INSERTS) {
      throw new QueueError(
        `A live job with the same unique key came and went ${MAX_INSERTS} times during an enqueue, ` +
          'or it is hidden from this role by row-level security (then make the tenant a part of the key)',
      );
    }
    open = answer(open, await insert(jobsOf(open)), false);
    if (open.length === 0) break;
    await faultPoint('enqueue: refused');
    open = answer(open, await findStandingJobs(db, tables, jobsOf(open)), true);
    if (open.length > 0) await faultPoint('enqueue: nobody stands');
  }
  return answers;

  async function insert(jobs: readonly NewJob[]): Promise<readonly (number | undefined)[]> {
    if (wakeUps === undefined) return (await insertJobs(db, tables, jobs)).ids;
    const queues = jobs.filter(mayBeDue).map(({ queue }) => queue);
    return (await wakeUps.allow(db, queues, (wakeUp) => insertJobs(db, tables, jobs, wakeUp))).ids;
  }

  /** Notes the ids that were found; returns the jobs without one. */
  function answer(asked: typeof open, ids: readonly (number | undefined)[], duplicate: boolean): typeof open {
    return asked.filter(({ index }, at) => {
      const id = ids[at];
      if (id !== undefined) answers[index] = { id, duplicate };
      return id === undefined;
    });
  }
}

function jobsOf(open: readonly { readonly job: NewJob }[]): NewJob[] {
  return open.map(({ job }) => job);
}
