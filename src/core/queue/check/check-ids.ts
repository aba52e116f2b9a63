import { hasLargeIds } from '../../queries/presence/has-large-ids.ts';
import type { QueueTables } from '../../schema/create-queue-tables.ts';
import type { Executor } from '../../sql/executor.ts';
import { IDS_TOO_LARGE } from '../../sql/new-job-id.ts';
import type { Finding } from './finding.ts';

/** Whether jobs that are enqueued through this node of a Citus cluster get ids that can be used. */
export async function checkIds(db: Executor, tables: QueueTables): Promise<Finding[]> {
  if (!(await hasLargeIds(db, tables))) return [];
  return [
    {
      code: 'ids-too-large',
      severity: 'error',
      message: `Jobs that are enqueued through this node of the Citus cluster never end: ${IDS_TOO_LARGE}`,
      fix: 'Let enqueues and workers connect to the coordinator, or to a node of a smaller group',
    },
  ];
}
