import { type SQL, sql } from 'drizzle-orm';
import type { TablesOfWorkflows } from './workflow-tables.ts';

/** Whether the handler of a live job `j` that no worker holds has been called: one that waits has a step. */
export function hasBegun({ queueSteps }: Pick<TablesOfWorkflows, 'queueSteps'>): SQL {
  return sql`(j.attempt > 0 or exists (
        select from ${queueSteps} as s where s.job_id = j.id and s.queue = j.queue
      ))`;
}
