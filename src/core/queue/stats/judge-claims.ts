import type { LiveFigures } from './count-live.ts';
import { leftOut } from './left-out.ts';
import { isWell, judge, unknown } from './make-vital.ts';
import type { Vital } from './queue-vitals.ts';
import type { ServerFigures } from './server-figures.ts';

/** Whether workers leave jobs out, because the database refuses their claims. */
export function judgeClaims(
  { crews, pauses }: LiveFigures,
  passedOver: ServerFigures['passedOver'],
  isLimited: (queue: string) => boolean,
): Vital[] {
  const fix = 'Look at oldest-snapshot, dead-rows and pg_locks.';
  if (passedOver === undefined) {
    const message = 'Timed out looking for jobs whose claims the database refuses';
    return [unknown('claims-refused', 'count', message, fix)];
  }
  const isKnown = crews !== undefined && pauses !== undefined;
  const paused = new Set(pauses?.map(({ queue }) => queue));
  // Without workers and pauses only what is parked is certain.
  const isExcused = (queue: string) => !isKnown || paused.has(queue) || isLimited(queue);
  const found = leftOut(passedOver.bands, crews ?? [], isExcused);
  const judged = judge(
    { code: 'claims-refused', unit: 'count', warningFrom: 1, errorFrom: Number.POSITIVE_INFINITY },
    found.map(({ count, ...one }) => ({ ...one, value: count })),
    'Workers can claim every due job',
  );
  if (!isWell(judged)) return judged;
  if (!passedOver.areAll) {
    const message = 'Too many queues to check all of them for jobs whose claims the database refuses';
    const fix = "Look for such jobs in the workers' error events.";
    return [unknown('claims-refused', 'count', message, fix)];
  }
  if (isKnown || passedOver.bands.every(({ head }) => head === undefined)) return judged;
  const message = 'The workers and pauses could not be read in time';
  return [unknown('claims-refused', 'count', message, fix)];
}
