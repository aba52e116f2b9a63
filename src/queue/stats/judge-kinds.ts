import type { LiveFigures } from './count-live.ts';
import { inWords, judge, unknown } from './make-vital.ts';
import type { Vital } from './queue-vitals.ts';
import { workersOf } from './workers-of.ts';

const MINUTE_MS = 60_000;

/** Which kinds nobody serves, though their jobs are due. */
export function judgeKinds({ kinds, queues, crews, pauses }: LiveFigures): Vital[] {
  const unseen = [...queues.values()].some(
    ({ precision }) => precision === 'unknown' || precision === 'estimated',
  );
  if (unseen) {
    const message = 'Nobody could look in time for which kinds are due';
    return [unknown('kind-unserved', 'ms', message, 'Look at oldest-snapshot, dead-rows and pg_locks.')];
  }
  const paused = new Set(pauses.map(({ queue }) => queue));
  return judge(
    { code: 'kind-unserved', unit: 'ms', warningFrom: MINUTE_MS, errorFrom: 5 * MINUTE_MS },
    kinds
      .filter(({ queue, kind, due }) => due > 0 && !paused.has(queue) && workersOf(crews, queue, kind) === 0)
      .map(({ queue, kind, due, oldestDueMs = 0 }) => ({
        queue,
        kind,
        value: oldestDueMs,
        message:
          `${due} jobs of '${kind}' in '${queue}' are due, the oldest for ${inWords(oldestDueMs)}, ` +
          'and no worker that serves the queue has a handler for the kind',
        fix: `Give a worker of '${queue}' a handler of '${kind}', or cancel these jobs.`,
      })),
    'Every kind that has been due for a minute has a worker',
  );
}
