import type { Database, JobState, ListFilter, Queue } from '../../index.ts';

/** How many jobs fit, as far as they were counted. */
export interface Counted {
  readonly jobs: number;
  /** Whether counting has stopped before the end. */
  readonly isLeast: boolean;
}

const MOST = 10_000;
const MOST_MS = 5_000;
const PAGE = 1_000;

/**
 * Counts the jobs that a filter finds in some states, up to ten thousand and for five seconds at most. That
 * is enough for a user who must confirm that these jobs are meant.
 */
export async function countJobs(
  db: Database,
  queue: Queue,
  filter: ListFilter,
  {
    states,
    limit = Number.POSITIVE_INFINITY,
  }: { readonly states: readonly JobState[]; readonly limit?: number | undefined },
): Promise<Counted> {
  const deadline = Date.now() + MOST_MS;
  const most = Math.min(MOST, limit);
  let jobs = 0;
  for (const state of states) {
    for (let cursor: number | undefined; ; ) {
      if (jobs >= most || Date.now() > deadline) return { jobs, isLeast: jobs < limit };
      const page = await queue.list(db, { ...filter, state, cursor, limit: Math.min(PAGE, most - jobs) });
      jobs += page.jobs.length;
      cursor = page.nextCursor;
      if (cursor === undefined) break;
    }
  }
  return { jobs, isLeast: false };
}

/** Such as `3 jobs` or `at least 10,000 jobs`. */
export function counted({ jobs, isLeast }: Counted): string {
  if (jobs === 0 && isLeast) return 'an unknown number of jobs';
  return `${isLeast ? 'at least ' : ''}${jobs.toLocaleString('en')} ${jobs === 1 ? 'job' : 'jobs'}`;
}
