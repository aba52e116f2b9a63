import type { ShownJob } from '../queries/show-job.ts';

/** One moment in the life of a job. */
export interface Moment {
  readonly what: string;
  readonly tone: 'plain' | 'good' | 'bad' | 'busy' | 'later';
  readonly at: Date;
  /** What the time up to the next moment, or until now, was spent with. */
  readonly spent: string | undefined;
  /** Which of the job's errors it is. */
  readonly error?: number;
}

/** The moments of a job in order, as far as its row tells them. */
export function timelineOf(job: ShownJob): Moment[] {
  const { createdAt, runAt, claimedAt, finishedAt, state, errors, attempt } = job;
  const failures = errors.flatMap((error, index) => {
    const at = new Date(error.at);
    return Number.isNaN(at.getTime()) ? [] : [{ error, index, at }];
  });
  const last = failures.at(-1)?.at;
  const moments: Moment[] = [{ what: 'Enqueued', tone: 'plain', at: createdAt, spent: 'waited' }];
  const ended = finishedAt !== null && state !== 'completed';
  for (const [place, { error, index, at }] of failures.entries()) {
    const ends = ended && place === failures.length - 1;
    if (ends && claimedAt !== null && claimedAt <= at) moments.push(begun(attempt, claimedAt, 'ran'));
    moments.push({
      what: error.name === 'Cancelled' ? 'Cancel recorded' : `Attempt ${error.attempt} failed: ${error.name}`,
      tone: 'bad',
      at,
      spent: ends ? undefined : 'waited',
      error: index,
    });
  }
  const later = runAt !== null && finishedAt === null && state === 'scheduled';
  if (claimedAt !== null && !(ended && last !== undefined && claimedAt <= last)) {
    // A claim before the newest failure is that of the failed attempt.
    if (state === 'running' || finishedAt !== null) {
      moments.push(begun(attempt, claimedAt, state === 'running' ? 'has run' : 'ran'));
    }
  }
  if (later) moments.push({ what: 'Runs', tone: 'later', at: runAt, spent: undefined });
  if (state === 'due' && runAt !== null && runAt > (last ?? createdAt)) {
    moments.push({ what: 'Due', tone: 'busy', at: runAt, spent: 'has waited' });
  }
  if (finishedAt !== null) {
    const what = `${state.charAt(0).toUpperCase()}${state.slice(1)}`;
    const tone = state === 'completed' ? 'good' : state === 'discarded' ? 'bad' : 'plain';
    moments.push({ what, tone, at: finishedAt, spent: undefined });
  }
  return moments.sort((a, b) => a.at.getTime() - b.at.getTime());
}

function begun(attempt: number, at: Date, spent: string): Moment {
  return { what: `Attempt ${attempt} claimed`, tone: 'busy', at, spent };
}
