import { checkDurationMs, checkObject, MAX_TIMER_MS } from '../job/limits.ts';
import type { OwnColumns } from '../schema/own-columns.ts';
import { checkExecutor, type Database } from '../sql/executor.ts';
import { sleep } from '../time/sleep.ts';
import type { EveryKind } from './every-kind.ts';
import type { WorkerOptions } from './options.ts';
import { Worker } from './worker.ts';

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
}

/** What {@link drain} has done. */
export interface DrainResult {
  readonly completed: number;
  /** Failed attempts; their jobs are retried later or were discarded. */
  readonly failed: number;
  readonly discarded: number;
  /** Attempts whose handlers asked to be called later, or wait for something. */
  readonly snoozed: number;
  readonly cancelled: number;
  /** Handlers that were told to stop at the deadline; their jobs were given back. */
  readonly interrupted: number;
  /** Whether no due job was left, as opposed to no time. */
  readonly empty: boolean;
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
  const { deadlineMs, ...workerOptions } = checkObject('drain: options', options);
  checkDurationMs('drain: deadlineMs', deadlineMs, 1, MAX_TIMER_MS);
  // As in createWorker: that the handlers fit was checked at the call.
  const settings = { ...workerOptions, shutdownTimeoutMs: 0 } as unknown as WorkerOptions<Database>;
  const worker = new Worker(db, settings, true);
  const count = { completed: 0, failed: 0, discarded: 0, snoozed: 0, cancelled: 0, interrupted: 0 };
  for (const event of Object.keys(count) as (keyof typeof count)[]) {
    worker.onOwn(event, (told) => {
      // What was claimed ahead and given back has not run.
      if (!('began' in told) || told.began) count[event]++;
    });
  }
  worker.onOwn('waiting', () => count.snoozed++);
  const over = new AbortController();
  const deadline = sleep(deadlineMs, over.signal).then(() => false);
  try {
    const emptied = worker.start().then(() => worker.emptied());
    const empty = await Promise.race([emptied.then(() => true), deadline]);
    await worker.stop();
    return { ...count, empty };
  } finally {
    over.abort();
  }
}
