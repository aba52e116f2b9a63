import type { Executor, Queue } from '../../index.ts';
import { checkOptions, namesOf } from '../../internal.ts';
import { checkQueue } from './check-queue.ts';
import { shiftTimes } from './shift-times.ts';
import { checkSpanMs, type TimeSpan } from './time-span.ts';
import { isTransaction } from './written-here.ts';

/** The options of {@link travel}. */
export interface TravelOptions {
  /**
   * Whether to move what others have written, too. In a transaction that locks their rows until its end.
   * @default false in a transaction, true for a database
   */
  all?: boolean | undefined;
}

const OPTIONS = namesOf<TravelOptions>({ all: true });

/**
 * Lets time pass for a queue: moves all its times back, so what is due in that time is due now. Jobs,
 * results, steps, flows, pauses, keys, holds of groups and schedules move; the rates of limits are free
 * again. Workers do not: none is declared gone by it. Nothing runs by itself; call {@link drainIn}, `drain`
 * or `runNext` then. To run what becomes due on the way, in its order, give `drainIn` an `until`.
 *
 * A schedule fires afterwards as if no worker had run in the meantime: `catchUp` decides, and a cron
 * expression means the real calendar of the time that lies behind you.
 *
 * In a transaction it moves what that has written itself, and needs no more than its rollback to be undone.
 * On a database of the test's own it moves everything.
 *
 * ```ts
 * await queue.enqueue(tx, remindUser, { userId: 1 }, { delayMs: 86_400_000 });
 * await travel(tx, queue, { hours: 25 });
 * ```
 *
 * Under concurrency: waits for transactions that write rows which it moves, with `all` or on a database.
 *
 * @throws TypeError | RangeError before anything is sent
 */
export async function travel(
  db: Executor,
  queue: Queue,
  by: TimeSpan,
  options: TravelOptions = {},
): Promise<void> {
  checkQueue('travel', queue);
  const ms = checkSpanMs('travel: the time to pass', by);
  const { all = !isTransaction(db) } = checkOptions('travel: options', options, OPTIONS);
  await shiftTimes(db, queue, { ms, written: !all });
}
