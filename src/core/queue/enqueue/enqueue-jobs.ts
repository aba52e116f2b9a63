import { QueueError } from '../../../errors.ts';
import { mayBeDue, type NewJob } from '../../job/new-job.ts';
import { findStandingJobs } from '../../queries/enqueue/find-standing-jobs.ts';
import { insertJobs } from '../../queries/enqueue/insert-jobs.ts';
import type { QueueTables } from '../../schema/index.ts';
import { checkOpen, type Executor } from '../../sql/executor.ts';
import { faultPoint } from '../../sql/fault-point.ts';
import type { WakeUps } from './wake-ups.ts';

/** The result of an enqueue. */
export interface EnqueueResult {
  /** The job's id; for a `duplicate`, that of the job with its key; for `replaced`, of the one it became. */
  readonly id: number;
  /** Whether the job was refused because another of its kind has its `uniqueKey`. */
  readonly duplicate: boolean;
  /** `replaced`: a job that waited with its key (of a debounce, for example) has become this one. */
  readonly outcome: 'enqueued' | 'duplicate' | 'replaced';
}

/** The result of an enqueue that was refused for a time. */
export interface RefusedEnqueueResult {
  /** Not known: the job that took the key may be long gone. */
  readonly id: undefined;
  readonly duplicate: boolean;
  /** `throttled` by `throttle`, a `duplicate` by `unique: { forMs }`. */
  readonly outcome: 'throttled' | 'duplicate';
}

/** The result of an enqueue with `throttle` or `unique: { forMs }`. */
export type LimitedEnqueueResult = EnqueueResult | RefusedEnqueueResult;

/** How often an enqueue with a key tries again when the job with its key ends or is claimed in between. */
const MAX_TRIES = 10;

/**
 * Inserts, and notifies the workers as `wakeUps` allows. Where a live job has the unique key, it finds that
 * job; where that job has just finished, it inserts again. Returns in input order.
 *
 * @throws QueueError when a live job with the same key comes and goes at every try, or cannot be seen; for a
 * transaction that has ended, where the driver knows it
 */
export async function enqueueJobs(
  db: Executor,
  tables: QueueTables,
  jobs: readonly NewJob[],
  wakeUps: WakeUps | undefined,
): Promise<EnqueueResult[]> {
  return await insertOrFind(jobs, {
    insert: async (jobs) => {
      // The transaction may have ended since the enqueue was called: a schema or `around.enqueue` may wait.
      checkOpen('enqueue', db);
      if (wakeUps === undefined) return (await insertJobs(db, tables, jobs)).ids;
      const queues = jobs.filter(mayBeDue).map(({ queue }) => queue);
      return (await wakeUps.allow(db, queues, (wakeUp) => insertJobs(db, tables, jobs, wakeUp))).ids;
    },
    find: (jobs) => findStandingJobs(db, tables, jobs),
  });
}

/** Both return ids in input order: of the jobs that are in, and of those that stand in the way of others. */
export interface InsertAndFind {
  insert(jobs: readonly NewJob[]): Promise<readonly (number | undefined)[]>;
  find(jobs: readonly NewJob[]): Promise<readonly (number | undefined)[]>;
}

/** Inserts jobs or finds those in their way, again and again until there is one or the other for each. */
export async function insertOrFind(
  jobs: readonly NewJob[],
  { insert, find }: InsertAndFind,
): Promise<EnqueueResult[]> {
  const what = 'enqueue: the job with the same unique key ended and was replaced';
  return await untilAnswered(what, jobs, async (open) => {
    const inserted = await insert(open);
    const refused = open.filter((_, at) => inserted[at] === undefined);
    if (refused.length === 0) return inserted.map((id) => answer(id, 'enqueued'));
    await faultPoint('enqueue: refused');
    const standing = await find(refused);
    if (standing.some((id) => id === undefined)) await faultPoint('enqueue: nobody stands');
    const found = standing.values();
    return inserted.map((id) => answer(id, 'enqueued') ?? answer(found.next().value, 'duplicate'));
  });
}

function answer(id: number | undefined, outcome: 'enqueued' | 'duplicate'): EnqueueResult | undefined {
  return id === undefined ? undefined : { id, duplicate: outcome === 'duplicate', outcome };
}

/**
 * Asks again for the jobs that have no answer, until each has one.
 *
 * @param what what the error says has happened at each try
 * @throws QueueError where a job has no answer after the last one
 */
export async function untilAnswered(
  what: string,
  jobs: readonly NewJob[],
  ask: (open: readonly NewJob[]) => Promise<readonly (EnqueueResult | undefined)[]>,
): Promise<EnqueueResult[]> {
  const answers = new Array<EnqueueResult>(jobs.length);
  let open = jobs.map((job, index) => ({ job, index }));
  for (let tries = 0; open.length > 0; tries++) {
    if (tries === MAX_TRIES) {
      throw new QueueError(
        `${what} ${MAX_TRIES} times, ` +
          'or it is hidden from this role by row-level security (then make the tenant a part of the key)',
      );
    }
    const results = await ask(open.map(({ job }) => job));
    open = open.filter(({ index }, at) => {
      const result = results[at];
      if (result !== undefined) answers[index] = result;
      return result === undefined;
    });
  }
  return answers;
}
