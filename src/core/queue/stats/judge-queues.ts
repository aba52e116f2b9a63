import type { LiveFigures } from './count-live.ts';
import { amountInWords, inWords, isOne, judge, unknown } from './make-vital.ts';
import { isOldestUnknown } from './queue-stats.ts';
import type { Vital } from './queue-vitals.ts';
import { workersOf } from './workers-of.ts';

const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;

/** How late queues are, and whether a pause was forgotten. Those that are paused are late on purpose. */
export function judgeQueues({ queues, crews, pauses, countedAt }: LiveFigures): Vital[] {
  const paused = new Set(pauses.map(({ queue }) => queue));
  const late = [...queues].filter(([queue]) => !paused.has(queue));
  const unseen = late.filter(([, counts]) => isOldestUnknown(counts));
  const oldest = judge(
    { code: 'oldest-due', unit: 'ms', warningFrom: MINUTE_MS, errorFrom: 10 * MINUTE_MS },
    late.map(([queue, { oldestDueMs = 0, due, running, precision }]) => ({
      queue,
      value: oldestDueMs,
      message:
        (isOne(due, precision)
          ? `The due job in '${queue}' has waited `
          : `The oldest of ${amountInWords(due, precision)} due jobs in '${queue}' has waited `) +
        inWords(oldestDueMs),
      fix:
        workersOf(crews, queue) === 0
          ? `No worker serves '${queue}': start one.`
          : `${isOne(running, precision) ? '1 job is' : `${amountInWords(running, precision)} jobs are`} ` +
            `running: give '${queue}' more concurrency, more workers, or shorter jobs.`,
    })),
    'No due job has waited for a minute',
  );
  return [
    // What is not known of one queue says nothing against what is known of another.
    ...(unseen.length === 0 ? oldest : oldest.filter(({ severity }) => severity !== 'ok')),
    ...(unseen.length === 0
      ? []
      : [
          unknown(
            'oldest-due',
            'ms',
            'Timed out checking how long jobs of ' +
              `${unseen.length === 1 ? '1 queue' : `${unseen.length} queues`} have been due`,
            'Look at oldest-snapshot, dead-rows, and the locks on queue_jobs in pg_locks.',
          ),
        ]),
    ...judge(
      { code: 'pause-forgotten', unit: 'ms', warningFrom: DAY_MS, errorFrom: Number.POSITIVE_INFINITY },
      pauses.map(({ queue, pausedAt }) => {
        const value = Math.max(0, countedAt.getTime() - pausedAt.getTime());
        return {
          queue,
          value,
          message: `'${queue}' has been paused for ${inWords(value)}`,
          fix: `Unless it is paused on purpose, resume it: queue.resume(db, '${queue}').`,
        };
      }),
      'No queue has been paused for a day',
    ),
  ];
}
