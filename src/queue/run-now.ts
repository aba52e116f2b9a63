import { checkId } from '../job/limits.ts';
import { findJob } from '../queries/find-job.ts';
import { notifyWorkers } from '../queries/notify-workers.ts';
import { runJobNow } from '../queries/run-job-now.ts';
import type { QueueTables } from '../schema/index.ts';
import type { Executor } from '../sql/executor.ts';
import { faultPoint } from '../sql/fault-point.ts';
import type { WakeUps } from './wake-ups.ts';

/**
 * Whether the job is due now. `waiting`: it waits for something that only this something ends. `locked`: a
 * transaction holds the job's row.
 */
export type RunNowResult =
  | { readonly due: true }
  | { readonly due: false; readonly reason: 'running' | 'waiting' | 'locked' | 'finished' | 'not-found' };

/** A claim locks rows for some milliseconds; these waits double, up to 0.3 seconds in all. */
const FIRST_WAIT_MS = 10;
const MAX_TRIES = 6;

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
  checkId('runNow', id);
  let wasThere = false;
  for (let tries = 1, waitMs = FIRST_WAIT_MS; ; tries++, waitMs *= 2) {
    const found = await findJob(db, tables, id);
    // A job that was there and is gone has completed with `keepResult: false`.
    if (found === undefined) return { due: false, reason: wasThere ? 'finished' : 'not-found' };
    if ('finishedAt' in found) return { due: false, reason: 'finished' };
    if (found.state === 'running' || found.state === 'waiting') return { due: false, reason: found.state };
    wasThere = true;
    await faultPoint('runNow: found');
    if (await runIn(found.queue)) return { due: true };
    // Another transaction is changing the row, or changed it between the two statements.
    if (tries === MAX_TRIES) return { due: false, reason: 'locked' };
    await new Promise((resolve) => setTimeout(resolve, waitMs));
  }

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
