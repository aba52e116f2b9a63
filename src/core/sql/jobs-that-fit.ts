import { type SQL, sql } from 'drizzle-orm';
import type { QueueTables } from '../schema/create-queue-tables.ts';
import { fitsFilter, type JobFilter } from './job-filter.ts';

/** Some jobs of one queue. */
export interface JobsOfQueue {
  readonly queue: string;
  /** In order. */
  readonly ids: readonly number[];
}

/** These jobs, as far as they fit a filter. */
export interface JobsThatFit extends JobsOfQueue {
  readonly filter: Omit<JobFilter, 'ids' | 'queue'>;
}

/** Locks the rows of these jobs, but for those that another transaction has locked. A select of their ids. */
export function lockThatFit(
  { queueJobs }: QueueTables,
  { queue, ids, filter }: JobsThatFit,
  and: readonly SQL[],
): SQL {
  return sql`
      select j.id from ${queueJobs} as j
      where ${sql.join([...fitsFilter({ ...filter, queue, ids }, 'j'), ...and], sql` and `)}
      order by j.id
      for no key update skip locked`;
}
