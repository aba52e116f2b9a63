import { checkDurationMs, checkObject, MAX_TIMER_MS } from '../../core/job/limits.ts';
import { shown } from '../../core/job/shown.ts';
import type { OwnColumns } from '../../core/schema/own-columns.ts';
import { checkExecutor, type Database } from '../../core/sql/executor.ts';
import { type DrainResult, drainBy } from '../../core/worker/drain.ts';
import type { EveryKind } from '../../core/worker/every-kind.ts';
import { Worker } from '../../core/worker/worker.ts';
import { additions } from './worker-additions.ts';
import type { WorkerOptions } from './worker-options.ts';

export type { DrainResult } from '../../core/worker/drain.ts';

/** Settings of {@link drain}. */
export interface DrainOptions<
  TDb,
  TOwn extends OwnColumns = OwnColumns,
  THandled extends string = string,
  TKind extends string = string,
> extends Omit<WorkerOptions<TDb, TOwn, THandled, TKind>, 'shutdownTimeoutMs' | 'listen'> {
  /**
   * How long to work at most, in milliseconds, at least 1. Handlers that still run then are told to stop and
   * get a second to return; leave that much, and a little for the writing, before the platform's own limit.
   */
  deadlineMs: number;
  /**
   * Ends it before the deadline, in the same way: for a platform, or a terminal, that says when to stop.
   * @default only the deadline ends it
   */
  signal?: AbortSignal | undefined;
}

/**
 * Works until no job is due, or until the deadline: for serverless functions and cron. A worker in all other
 * respects, so any number of drains and workers may run side by side.
 *
 * ```ts
 * export const GET = async () => Response.json(await drain(db, { queue, handlers, deadlineMs: 50_000 }));
 * ```
 *
 * @throws TypeError when `db` is a transaction, or a single client in place of a connection pool
 */
export async function drain<
  TDb extends Database,
  TOwn extends OwnColumns,
  THandled extends string = string,
  TKind extends string = string,
>(
  db: TDb,
  options: DrainOptions<NoInfer<TDb>, TOwn, THandled, TKind> & EveryKind<THandled, TKind>,
): Promise<DrainResult> {
  checkExecutor('drain', db);
  const { deadlineMs, signal, ...workerOptions } = checkObject('drain: options', options);
  checkDurationMs('drain: deadlineMs', deadlineMs, 1, MAX_TIMER_MS);
  if (signal !== undefined && !(signal instanceof AbortSignal)) {
    throw new TypeError(`drain: signal must be an AbortSignal, got ${shown(signal)}`);
  }
  // As in createWorker: that the handlers fit was checked at the call.
  const settings = { ...workerOptions, shutdownTimeoutMs: 0 } as unknown as WorkerOptions<Database>;
  const worker = new Worker(db, settings, { until: 'empty', additions });
  return await drainBy(worker, { deadlineMs, signal });
}
