import { type SQL, sql } from 'drizzle-orm';
import type { TablesOfWorkflows } from './workflow-tables.ts';

/**
 * Whether a job `j` waits: its row says so (see `blockers` in `queue_jobs`), and its time is not over. One
 * that is due, as it was just woken or has waited for long enough, waits as long as one of its steps does. A
 * step that has failed and is to be tried again has an error, and a sleep that has passed is never written
 * again.
 */
export function isWaiting({ queueSteps }: Pick<TablesOfWorkflows, 'queueSteps'>): SQL {
  return sql`j.worker_id is null and j.blockers is not null and (
        j.run_at > statement_timestamp() or exists (
          select from ${queueSteps} as s
          where s.job_id = j.id and s.queue = j.queue and s.ended_at is null and s.error is null
            and (s.kind <> 'sleep' or s.until > statement_timestamp())
        )
      )`;
}
