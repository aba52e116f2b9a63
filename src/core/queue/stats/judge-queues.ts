import type { LiveFigures } from './count-live.ts';
import { amountInWords, inWords, isOne, isWell, judge, unknown } from './make-vital.ts';
import { isOldestUnknown, type LiveCounts } from './queue-stats.ts';
import type { Vital } from './queue-vitals.ts';
import { workersOf } from './workers-of.ts';

const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;

/** How late queues are, and whether a pause was forgotten. Paused ones are late on purpose. */
export function judgeQueues(live: LiveFigures): Vital[] {
  return [...judgeLate(live), ...judgePauses(live)];
}

function judgeLate({ queues, crews, pauses, hasAllQueues, timedOut }: LiveFigures): Vital[] {
  const paused = new Set(pauses?.map(({ queue }) => queue));
  const late = [...queues].filter(([queue]) => !paused.has(queue));
  const oldest = judge(
    { code: 'oldest-due', unit: 'ms', warningFrom: MINUTE_MS, errorFrom: 10 * MINUTE_MS },
    late.map(([queue, counts]) => ({
      queue,
      value: counts.oldestDueMs ?? 0,
      message:
        (isOne(counts.due, counts.precision)
          ? `The due job in '${queue}' has waited `
          : `The oldest of ${amountInWords(counts.due, counts.precision)} due jobs ` +
            `in '${queue}' has waited `) + inWords(counts.oldestDueMs ?? 0),
      fix: fixOf(queue, counts, crews),
    })),
    'No due job has waited for a minute',
  );
  if (pauses === undefined && !isWell(oldest)) {
    const message = 'Jobs are late. The paused queues could not be read in time';
    return [unknown('oldest-due', 'ms', message, 'Look at the locks on queue_pauses in pg_locks.')];
  }
  if (hasAllQueues) return oldest;
  const unseen = late.filter(([, counts]) => isOldestUnknown(counts));
  const ofQueues = unseen.length === 1 ? ' of 1 queue' : ` of ${unseen.length} queues`;
  // What is not known of one queue says nothing against what is known of another.
  const known = oldest.filter(({ severity }) => severity !== 'ok');
  if (!timedOut) {
    const message = 'Too many queues or groups to check how long jobs of each have been due';
    const fix = "Look at single queues: queue.list(db, { queue, state: 'due' }).";
    return [...known, unknown('oldest-due', 'ms', message, fix)];
  }
  return [
    ...known,
    unknown(
      'oldest-due',
      'ms',
      `Timed out checking how long jobs${unseen.length === 0 ? '' : ofQueues} have been due`,
      'Look at oldest-snapshot, dead-rows, and the locks on queue_jobs in pg_locks.',
    ),
  ];
}

/** What to do about a queue that is late. */
function fixOf(queue: string, { running, precision }: LiveCounts, crews: LiveFigures['crews']): string {
  if (crews === undefined) {
    return `Check whether a worker serves '${queue}': the workers could not be read in time.`;
  }
  if (workersOf(crews, queue) === 0) return `No worker serves '${queue}': start one.`;
  // More concurrency does not help where slots are free.
  if (running === 0 && precision === 'exact') {
    return (
      'Workers serve it, but none of its jobs is running: look at kind-unserved, claims-refused and ' +
      `workers-silent, at the workers' errors, and at the limits of '${queue}'.`
    );
  }
  return (
    `${isOne(running, precision) ? '1 job is' : `${amountInWords(running, precision)} jobs are`} ` +
    `running: give '${queue}' more concurrency, more workers, or shorter jobs.`
  );
}

function judgePauses({ pauses, countedAt }: LiveFigures): Vital[] {
  if (pauses === undefined) {
    const message = 'The pauses could not be read in time';
    return [unknown('pause-forgotten', 'ms', message, 'Look at the locks on queue_pauses in pg_locks.')];
  }
  return judge(
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
  );
}
