import { QueueError } from '../errors.ts';
import { mayBeDue, type NewJob } from '../job/new-job.ts';
import { findStandingJobs } from '../queries/find-standing-jobs.ts';
import { insertJobs } from '../queries/insert-jobs.ts';
import type { QueueTables } from '../schema/index.ts';
import type { Executor } from '../sql/executor.ts';
import { faultPoint } from '../sql/fault-point.ts';
import type { WakeUps } from './wake-ups.ts';

/** What became of an enqueue. */
export interface EnqueueResult {
  /** The job's id, or, when `duplicate`, the id of the live job that stands in its way. */
  readonly id: number;
  /** Whether the job was refused because a live job of its kind with its `uniqueKey` stands. */
  readonly duplicate: boolean;
}

/** How often an enqueue with a unique key is tried again when the job in its way finishes just then. */
const MAX_INSERTS = 10;

/**
 * Inserts, and notifies the workers as `wakeUps` allows; where a live job is in the way, finds it; where that has just finished, inserts again. Answers in input order.
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
        `A live job with the same unique key came and went ${MAX_INSERTS} times during an enqueue, or it is hidden from ` +
          'this role by row-level security (then make the tenant a part of the key)',
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

  /** Notes the ids that came; answers the jobs for which none did. */
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
