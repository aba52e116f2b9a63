import { checkId, checkIds } from '../../job/limits.ts';
import { findJob } from '../../queries/operate/find-job.ts';
import { findRunnable } from '../../queries/operate/find-runnable.ts';
import { runJobNow, runJobsNow } from '../../queries/operate/run-job-now.ts';
import { notifyWorkers } from '../../queries/presence/notify-workers.ts';
import type { QueueTables } from '../../schema/index.ts';
import { checkExecutor, type Executor } from '../../sql/executor.ts';
import { faultPoint } from '../../sql/fault-point.ts';
import type { JobRecord } from '../../sql/job-record.ts';
import { CLAIM_REFUSED } from '../../sql/refused-claim.ts';
import { whileLocked } from '../../time/while-locked.ts';
import type { WakeUps } from '../enqueue/wake-ups.ts';

/**
 * Whether the job is due now. `waiting`: it waits for something that only this something ends. `locked`: a
 * transaction holds the job's row.
 */
export type RunNowResult =
  | { readonly due: true }
  | { readonly due: false; readonly reason: 'running' | 'waiting' | 'locked' | 'finished' | 'not-found' };

/** What a {@link Queue.runNowMany} did. */
export interface RunNowManyResult {
  /** How many of the jobs are due now, those included that had been due before. */
  readonly due: number;
  /** How many were left alone, because another transaction holds their rows. */
  readonly locked: number;
}

/**
 * Makes a scheduled job, or one that waits for its next attempt, due now, and notifies the queue's workers as
 * `wakeUps` allows.
 *
 * @throws TypeError before anything is sent
 */
export async function runNow(
  db: Executor,
  tables: QueueTables,
  id: number,
  wakeUps: WakeUps | undefined,
): Promise<RunNowResult> {
  checkExecutor('runNow', db);
  checkId('runNow', id);
  let wasThere = false;
  const reason = await whileLocked(async () => {
    const found = await findJob(db, tables, id, []);
    // A job that was there and is gone has completed with `keepResult: false`.
    if (found === undefined) return wasThere ? 'finished' : 'not-found';
    if ('finishedAt' in found) return 'finished';
    const { state } = found;
    if (state === 'running' || (state === 'waiting' && !wasRefused(found))) return state;
    wasThere = true;
    await faultPoint('runNow: found');
    // Otherwise another transaction is changing the row, or changed it between the two statements.
    return (await runIn(found.queue)) ? 'due' : 'locked';
  });
  return reason === 'due' ? { due: true } : { due: false, reason };

  async function runIn(queue: string): Promise<boolean> {
    if (wakeUps === undefined) return await runJobNow(db, tables, { id, queue });
    const { due } = await wakeUps.allow(db, [queue], async (wakeUp) => {
      const due = await runJobNow(db, tables, { id, queue });
      if (due && wakeUp !== undefined) await notifyWorkers(db, tables, queue, wakeUp.channel);
      return { due, woken: due && wakeUp !== undefined ? [queue] : [] };
    });
    return due;
  }
}

/** Whether a waiting job was parked because the database refused its claim. */
export function wasRefused({ errors }: Pick<JobRecord, 'errors'>): boolean {
  return errors.at(-1)?.name === CLAIM_REFUSED;
}

/**
 * Makes the unheld jobs that have a time due now, in one statement per queue, and notifies the queues'
 * workers as `wakeUps` allows.
 *
 * @throws TypeError before anything is sent
 */
export async function runNowMany(
  db: Executor,
  tables: QueueTables,
  ids: readonly number[],
  wakeUps: WakeUps | undefined,
): Promise<RunNowManyResult> {
  const done = new Set<number>();
  checkExecutor('runNowMany', db);
  const left = new Set(checkIds('runNowMany', ids));
  const find = async () => (left.size === 0 ? [] : await findRunnable(db, tables, [...left]));
  let found = await find();
  await whileLocked(async () => {
    if (found.length === 0) return 'done';
    await faultPoint('runNow: found');
    for (const queue of new Set(found.map((job) => job.queue))) {
      const ofQueue = found.filter((job) => job.queue === queue).map(({ id }) => id);
      for (const id of await runIn(queue, ofQueue)) {
        done.add(id);
        left.delete(id);
      }
    }
    found = await find();
    return found.length === 0 ? 'done' : 'locked';
  });
  return { due: done.size, locked: found.length };

  async function runIn(queue: string, ids: readonly number[]): Promise<readonly number[]> {
    if (wakeUps === undefined) return await runJobsNow(db, tables, { ids, queue });
    const { due } = await wakeUps.allow(db, [queue], async (wakeUp) => {
      const due = await runJobsNow(db, tables, { ids, queue });
      const woken = due.length > 0 && wakeUp !== undefined;
      if (woken) await notifyWorkers(db, tables, queue, wakeUp.channel);
      return { due, woken: woken ? [queue] : [] };
    });
    return due;
  }
}
