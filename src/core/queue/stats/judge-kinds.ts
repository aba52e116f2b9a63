import type { LiveFigures } from './count-live.ts';
import { amountInWords, inWords, isOne, isWell, judge, unknown } from './make-vital.ts';
import type { Vital } from './queue-vitals.ts';
import { workersOf } from './workers-of.ts';

const MINUTE_MS = 60_000;

/** Which kinds have due jobs but no worker that serves them. */
export function judgeKinds(live: LiveFigures): Vital[] {
  const { kinds, queues, crews = [], pauses = [], hasAllQueues } = live;
  const paused = new Set(pauses.map(({ queue }) => queue));
  const found = judge(
    { code: 'kind-unserved', unit: 'ms', warningFrom: MINUTE_MS, errorFrom: 5 * MINUTE_MS },
    kinds
      .filter(({ queue, kind, due }) => due > 0 && !paused.has(queue) && workersOf(crews, queue, kind) === 0)
      .map(({ queue, kind, due, oldestDueMs = 0, precision }) => ({
        queue,
        kind,
        value: oldestDueMs,
        message:
          (isOne(due, precision)
            ? `1 job of '${kind}' in '${queue}' has been due for `
            : `${amountInWords(due, precision)} jobs of '${kind}' in '${queue}' are due, the oldest for `) +
          `${inWords(oldestDueMs)}, and no worker that serves the queue has a handler for the kind`,
        fix: `Give a worker of '${queue}' a handler of '${kind}', or cancel these jobs.`,
      })),
    'Every kind with jobs due for a minute has a worker',
  );
  const fix = 'Look at oldest-snapshot, dead-rows and pg_locks.';
  if (live.crews === undefined || live.pauses === undefined) {
    // Without workers and pauses it was judged as if there were none.
    if (isWell(found) && hasAllQueues) return found;
    const message = 'The workers and pauses could not be read in time';
    return [unknown('kind-unserved', 'ms', message, fix)];
  }
  // Of queues whose jobs were not all counted only the kinds that have waited longest are known.
  const unseen = [...queues.values()].some(({ precision }) => precision !== 'exact');
  if ((!unseen && hasAllQueues) || !isWell(found)) return found;
  if (!live.timedOut) {
    const message = 'Too many live jobs to check which kinds have due jobs';
    const fix = 'Compare the kinds that you enqueue with the handlers of your workers.';
    return [unknown('kind-unserved', 'ms', message, fix)];
  }
  return [unknown('kind-unserved', 'ms', 'Timed out checking which kinds have due jobs', fix)];
}
