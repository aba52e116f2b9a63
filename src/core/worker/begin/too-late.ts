import type { Attempt } from '../run/attempt.ts';

/** Whether the time is over in which the job of this attempt may begin, if it has one. */
export function isTooLate({ job: { beginTime } }: Attempt): boolean {
  return beginTime !== undefined && performance.now() >= beginTime.untilMs;
}

/** Those whose time to begin is over; what has claimed them learns of it. */
export function missed(attempts: Iterable<Attempt>): readonly Attempt[] {
  const late = [...attempts].filter(isTooLate);
  for (const { job } of late) job.beginTime?.onMissed();
  return late;
}
