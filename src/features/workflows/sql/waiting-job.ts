import { type SQL, sql } from 'drizzle-orm';
import type { TablesOfWorkflows } from './workflow-tables.ts';

/**
 * Whether a job `j` waits: for something without a limit of time, as by its `run_at`, for other jobs
 * before it begins, or as one of its steps says. `blockers` alone say less: an attempt that was given back
 * or has failed may have left some. A wait that has a limit looks like a delay in its row, and one that was
 * just woken is due. A step that has failed and is to be tried again has an error, and a sleep that has
 * passed is never written again.
 */
export function isWaiting({ queueSteps, queueWaits, queueBatches }: TablesOfWorkflows): SQL {
  return sql`j.worker_id is null and (
        j.run_at = 'infinity' or (j.blockers is not null and j.attempt = 0 and exists (
          select from ${queueWaits} as w join ${queueBatches} as b on b.id = w.batch_id
          where w.job_id = j.id and w.queue = j.queue and w.policy in ('run', 'cancel')
            and b.ended_at is null
        )) or exists (
          select from ${queueSteps} as s
          where s.job_id = j.id and s.queue = j.queue and s.ended_at is null and s.error is null
            and (s.kind <> 'sleep' or s.until > statement_timestamp())
        )
      )`;
}
