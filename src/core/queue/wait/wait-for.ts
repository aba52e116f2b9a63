import { checkDefinition, type JobDefinition } from '../../job/definition.ts';
import { checkId } from '../../job/limits.ts';
import type { QueueTables } from '../../schema/index.ts';
import { checkExecutor, type Executor } from '../../sql/executor.ts';
import { perDatabase } from '../../sql/per-database.ts';
import type { FinalRecord } from './final-record.ts';
import { JobGoneError, WaitTimeoutError } from './wait-errors.ts';
import { type CheckedWait, checkNoTransaction, checkWaitOptions, type WaitOptions } from './wait-options.ts';
import { type Waiter, Waiters } from './waiters.ts';

/** Waits on the same database and queue share statements. */
const waitersOf = /* @__PURE__ */ perDatabase((db, tables) => new Waiters(db, tables));

/**
 * Waits until a job has ended, and returns its final record.
 *
 * @throws RangeError | TypeError before anything is sent
 * @throws WaitTimeoutError | JobGoneError, or the reason of the signal
 */
export async function waitFor(
  db: Executor,
  tables: QueueTables,
  job: JobDefinition,
  id: number,
  options: WaitOptions = {},
): Promise<FinalRecord> {
  checkExecutor('waitFor', db);
  checkDefinition('waitFor', job);
  checkId('waitFor', id);
  const checked = checkWaitOptions('waitFor', options);
  checkNoTransaction('waitFor', db);
  return await endOf(db, tables, job.kind, id, checked);
}

/** The same with everything checked. */
export async function endOf(
  db: Executor,
  tables: QueueTables,
  kind: string,
  id: number,
  { timeoutMs, signal, awaited }: CheckedWait,
): Promise<FinalRecord> {
  const waiters = waitersOf(db, tables);
  const notices = awaited ? await waiters.notices() : undefined;
  return await new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    let lastError: unknown;
    const settle = (settled: () => void) => {
      leave();
      clearTimeout(timer);
      signal?.removeEventListener('abort', abort);
      settled();
    };
    const abort = () => settle(() => reject(signal?.reason));
    const timer = setTimeout(() => {
      const cause = lastError === undefined ? undefined : { cause: lastError };
      settle(() => reject(new WaitTimeoutError(kind, id, timeoutMs, cause)));
    }, timeoutMs);
    signal?.addEventListener('abort', abort);
    const waiter: Waiter = {
      ended: (record) =>
        settle(() => (record.kind === kind ? resolve(record) : reject(otherKind(kind, record)))),
      gone: (wasLive) => settle(() => reject(new JobGoneError(kind, id, wasLive ? 'not-kept' : 'unknown'))),
      failed: (error) => settle(() => reject(error)),
      delayed: (error) => {
        lastError = error;
      },
    };
    const leave = waiters.add(id, waiter, notices);
  });
}

function otherKind(kind: string, record: FinalRecord): TypeError {
  return new TypeError(`waitFor: job ${record.id} is a '${record.kind}', not a '${kind}'`);
}
