import type { LiveFigures } from './count-live.ts';
import { leftOut } from './left-out.ts';
import { judge, unknown } from './make-vital.ts';
import type { Vital } from './queue-vitals.ts';
import type { ServerFigures } from './server-figures.ts';

/** Whether workers leave jobs out, because the database refuses their claims. */
export function judgeClaims(
  { crews, pauses }: LiveFigures,
  passedOver: ServerFigures['passedOver'],
  isLimited: (queue: string) => boolean,
): Vital[] {
  if (passedOver === undefined) {
    const message = 'Timed out looking for jobs whose claims the database refuses';
    return [unknown('claims-refused', 'count', message, 'Look at oldest-snapshot, dead-rows and pg_locks.')];
  }
  const paused = new Set(pauses.map(({ queue }) => queue));
  const found = leftOut(passedOver, crews, (queue) => paused.has(queue) || isLimited(queue));
  return judge(
    { code: 'claims-refused', unit: 'count', warningFrom: 1, errorFrom: Number.POSITIVE_INFINITY },
    found.map(({ count, ...one }) => ({ ...one, value: count })),
    'Workers can claim every due job',
  );
}
