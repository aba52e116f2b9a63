import type { ShownJob } from '../../internal.ts';

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

/**
 * The moments of a job in order, as far as its row tells them. An attempt's beginning is in its error; of the
 * last attempt, and of jobs from before it was recorded there, it is the claim.
 */
export function timelineOf(job: ShownJob): Moment[] {
  const { createdAt, runAt, claimedAt, finishedAt, state, errors, attempt } = job;
  const failures = errors.flatMap((error, index) => {
    const at = dateIn(error.at);
    return at === undefined ? [] : [{ error, index, at, startedAt: dateIn(error.startedAt) }];
  });
  const last = failures.at(-1);
  const moments: Moment[] = [{ what: 'Enqueued', tone: 'plain', at: createdAt, spent: 'waited' }];
  const ended = finishedAt !== null && state !== 'completed';
  for (const failure of failures) {
    const { error, index, at, startedAt } = failure;
    const isEnd = ended && failure === last;
    const claim = isEnd && claimedAt !== null && claimedAt <= at ? claimedAt : undefined;
    if (startedAt !== undefined && startedAt <= at) moments.push(begun(error.attempt, startedAt, 'ran'));
    else if (claim !== undefined) moments.push(claimed(attempt, claim, 'ran'));
    moments.push({
      what: error.name === 'Cancelled' ? 'Cancel recorded' : `Attempt ${error.attempt} failed: ${error.name}`,
      tone: 'bad',
      at,
      spent: isEnd ? undefined : 'waited',
      error: index,
    });
  }
  // A claim before the newest failure is that of the failed attempt.
  const ofFailure = ended && last !== undefined && claimedAt !== null && claimedAt <= last.at;
  if (claimedAt !== null && !ofFailure && (state === 'running' || finishedAt !== null)) {
    moments.push(claimed(attempt, claimedAt, state === 'running' ? 'has run' : 'ran'));
  }
  if (runAt !== null && finishedAt === null && state === 'scheduled') {
    moments.push({ what: 'Runs', tone: 'later', at: runAt, spent: undefined });
  }
  if (state === 'due' && runAt !== null && runAt > (last?.at ?? createdAt)) {
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
  return { what: `Attempt ${attempt} began`, tone: 'busy', at, spent };
}

function claimed(attempt: number, at: Date, spent: string): Moment {
  return { what: `Attempt ${attempt} claimed`, tone: 'busy', at, spent };
}

/** Errors are JSON, which may have been written by hand. */
function dateIn(text: string | undefined): Date | undefined {
  const date = new Date(text ?? Number.NaN);
  return Number.isNaN(date.getTime()) ? undefined : date;
}
