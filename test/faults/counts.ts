import type { ProcessEntry } from './run-log.ts';

/** What the end of a job says of its attempts. */
export interface CountedResult {
  readonly job_id: string;
  readonly fence: number;
  readonly attempt: number;
  readonly worker_id: string | null;
}

/**
 * So many attempts of one job may be spent before its handler begins, when workers are lost: the first claim of a job, and one that
 * was recorded just before it was to be called (docs/guarantees.md).
 */
const SPENT_UNBEGUN = 2;

export interface CountsToCheck {
  readonly entries: readonly ProcessEntry[];
  readonly results: readonly CountedResult[];
  readonly killed: ReadonlySet<string>;
  /**
   * How often another server took over, or the same one began again. Each time an attempt may be spent whose
   * claim it had carried out and not answered (docs/guarantees.md).
   */
  readonly takeovers: number;
}

/** Ends, losses and attempts that do not add up: what the news says, against the results. */
export function wrongCounts({ entries, results, killed, takeovers }: CountsToCheck): {
  readonly untold: string[];
  readonly notLost: string[];
  readonly overspent: string[];
} {
  const processOf = new Map<string, string>();
  const told = new Set<string>();
  const spent = new Map<number, number>();
  const add = (job: number, count: number) => spent.set(job, (spent.get(job) ?? 0) + count);
  const begun = new Set<string>();
  let anybodyLost = killed.size > 0;
  for (const { event, process, job = 0, fence, detail } of entries) {
    const attempt = `${process} ${job}/${fence}`;
    if (event === 'started') processOf.set(detail ?? '', process);
    if (event === 'gone') anybodyLost = true;
    if (event === 'settled') told.add(attempt);
    if (event === 'begun') {
      begun.add(attempt);
      add(job, 1);
    }
    // A snooze and an interruption give the attempt back.
    if (event === 'rescheduled' && detail !== 'failed' && begun.has(attempt)) add(job, -1);
  }
  const resultOf = new Map(results.map((result) => [Number(result.job_id), result]));
  const unbegun = takeovers + (anybodyLost ? SPENT_UNBEGUN : 0);
  return {
    untold: results.flatMap(({ job_id, fence, worker_id }) => {
      const process = processOf.get(worker_id ?? '');
      const mustKnow = process !== undefined && !killed.has(process);
      return mustKnow && !told.has(`${process} ${job_id}/${fence}`) ? [`${process} ${job_id}/${fence}`] : [];
    }),
    notLost: entries.flatMap(({ event, process, job = 0, fence = 0 }) => {
      const result = resultOf.get(job);
      return event === 'lost' && result !== undefined && result.fence <= fence
        ? [`${process} ${job}/${fence}`]
        : [];
    }),
    overspent: results.flatMap(({ job_id, attempt }) => {
      const begunAttempts = spent.get(Number(job_id)) ?? 0;
      return attempt > begunAttempts + unbegun
        ? [`${job_id}: ${attempt} attempts, of which ${begunAttempts} began`]
        : [];
    }),
  };
}
