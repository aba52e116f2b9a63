import { checkOptions, namesOf } from '../../job/known-options.ts';
import { checkBoolean, checkId } from '../../job/limits.ts';
import { shown } from '../../job/shown.ts';
import { cancellation } from '../../job/transition.ts';
import { findJob } from '../../queries/operate/find-job.ts';
import { requestCancel } from '../../queries/operate/request-cancel.ts';
import { cancelJob } from '../../queries/settle/cancel-job.ts';
import type { QueueTables } from '../../schema/index.ts';
import { checkExecutor, type Executor } from '../../sql/executor.ts';
import { faultPoint } from '../../sql/fault-point.ts';
import { whileLocked } from '../../time/while-locked.ts';

/** The options of {@link Queue.cancel}. */
export interface CancelOptions {
  /** Kept in the result's errors, up to 2,000 characters, and told to the handler. @default 'cancelled' */
  reason?: string | undefined;
  /** Ends a running job at once, as cancelled, whatever its handler does. @default false */
  force?: boolean | undefined;
}

const OPTIONS = namesOf<CancelOptions>({ reason: true, force: true });

/**
 * What a cancel did: `true` when the job has ended, `'requested'` when a worker runs it: its handler is told,
 * and the job will not run again. Both are truthy. With `false` it did nothing. `locked`: a
 * transaction holds the job's row (`runNext` runs it, or its handler has called `complete(tx)` and not
 * committed yet).
 */
export type CancelResult =
  | { readonly cancelled: true }
  | { readonly cancelled: 'requested' }
  | { readonly cancelled: false; readonly reason: 'locked' | 'finished' | 'not-found' };

/**
 * Ends an unheld job, or any job with `force`; requests the end of a held job.
 *
 * @param channel where workers are notified; `undefined`: they find the request by polling
 * @throws TypeError before anything is sent
 */
export async function cancel(
  db: Executor,
  tables: QueueTables,
  id: number,
  options: CancelOptions,
  channel: string | undefined,
): Promise<CancelResult> {
  checkExecutor('cancel', db);
  checkId('cancel', id);
  const { reason = 'cancelled', force = false } = checkOptions('cancel: options', options, OPTIONS);
  checkBoolean('cancel: force', force);
  let wasThere = false;
  const result = await whileLocked(async (): Promise<CancelResult | 'locked'> => {
    const found = await findJob(db, tables, id, []);
    // A job that was there and is gone has completed with `keepResult: false`.
    if (found === undefined) return { cancelled: false, reason: wasThere ? 'finished' : 'not-found' };
    if ('finishedAt' in found) return { cancelled: false, reason: 'finished' };
    wasThere = true;
    const { queue, attempt } = found;
    await faultPoint('cancel: found');
    const record = cancellation(attempt, typeof reason === 'string' ? reason : shown(reason));
    const cancelled = { id, queue, reason: record, force: force ? { channel } : undefined };
    if (await cancelJob(db, tables, cancelled)) return { cancelled: true };
    await faultPoint('cancel: not waiting');
    if (!force && (await requestCancel(db, tables, { id, queue, reason: record.message, channel })))
      return { cancelled: 'requested' };
    // Another transaction is changing the row, or changed it between the two statements.
    return 'locked';
  });
  return result === 'locked' ? { cancelled: false, reason: 'locked' } : result;
}
