import type { LiveFigures } from './count-live.ts';
import { judge, unknown } from './make-vital.ts';
import type { Vital } from './queue-vitals.ts';

/** With fewer, one bad address would be a warning. */
const LEAST = 10;
/** Of the jobs of a kind that are retried or have completed lately. */
const SHARE = 0.2;

/**
 * Which kinds fail and are retried. Nothing is discarded until the attempts are used up, so without this a
 * kind that always fails would look healthy for hours.
 */
export function judgeRetrying({ retrying, results }: LiveFigures): Vital[] {
  if (retrying === undefined) {
    const message = 'Timed out counting the jobs that wait for another attempt';
    return [
      unknown('jobs-retrying', 'count', message, 'Run queue.check to see whether an index is missing.'),
    ];
  }
  const completed = new Map(
    results?.map(({ queue, kind, read, discarded }) => [JSON.stringify([queue, kind]), read - discarded]),
  );
  const bad = retrying.kinds.filter(({ queue, kind, jobs }) => {
    const lately = completed.get(JSON.stringify([queue, kind])) ?? 0;
    return jobs >= LEAST && jobs / (jobs + lately) >= SHARE;
  });
  if (results === undefined && bad.length > 0) {
    const message = 'The results could not be read in time';
    return [unknown('jobs-retrying', 'count', message, 'Look at pg_locks for a lock on queue_results.')];
  }
  return judge(
    { code: 'jobs-retrying', unit: 'count', warningFrom: LEAST, errorFrom: Number.POSITIVE_INFINITY },
    bad.map(({ queue, kind, jobs }) => ({
      queue,
      kind,
      value: jobs,
      message:
        `${retrying.isLeast ? 'At least ' : ''}${jobs} jobs of '${kind}' in '${queue}' have failed ` +
        'and wait for another attempt',
      fix: `Look at their errors: filter the dashboard or list by "kind:${kind} state:retrying".`,
    })),
    'Few jobs wait for another attempt after a failed one',
  );
}
