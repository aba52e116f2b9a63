import { sleep } from '../time/sleep.ts';
import type { Worker } from './worker.ts';

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
  /**
   * Whether no due job was left, as opposed to no time. One that another transaction has locked does not
   * count, nor the jobs of a group that one has locked: it may be taking them.
   */
  readonly empty: boolean;
}

/**
 * Lets a worker that ends when its queues are empty work, and stops it: after this many milliseconds at most,
 * or when a signal is aborted.
 */
export async function drainBy(
  worker: Worker,
  { deadlineMs, signal }: { readonly deadlineMs: number; readonly signal?: AbortSignal | undefined },
): Promise<DrainResult> {
  const count = { completed: 0, failed: 0, discarded: 0, snoozed: 0, cancelled: 0, interrupted: 0 };
  for (const event of Object.keys(count) as (keyof typeof count)[]) {
    worker.onOwn(event, (told) => {
      // What was claimed ahead and given back has not run.
      if (!('began' in told) || told.began) count[event]++;
    });
  }
  worker.onOwn('waiting', () => count.snoozed++);
  const over = new AbortController();
  const giveUp = () => over.abort();
  if (signal?.aborted === true) giveUp();
  signal?.addEventListener('abort', giveUp);
  const deadline = sleep(deadlineMs, over.signal).then(() => false);
  try {
    const emptied = worker.start().then(() => worker.emptied());
    const empty = await Promise.race([emptied, deadline]);
    await worker.stop();
    return { ...count, empty };
  } finally {
    signal?.removeEventListener('abort', giveUp);
    over.abort();
  }
}
