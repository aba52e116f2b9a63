import { type SQL, sql } from 'drizzle-orm';
import type { QueueTables } from '../../../core/schema/create-queue-tables.ts';
import type { Executor } from '../../../core/sql/executor.ts';
import { type LimitTables, queryLimitRows } from '../sql/limit-tables.ts';

/** The groups of one queue that a discarded job has stopped. */
export interface StoppedGroups {
  readonly queue: string;
  readonly groups: number;
  /** The first of them, by name. */
  readonly first: string;
}

/** Which of these queues have groups that a discarded job has stopped until they are unblocked. */
export async function findStoppedGroups(
  db: Executor,
  tables: QueueTables & Pick<LimitTables, 'queueHolds'>,
  queues: readonly string[],
): Promise<StoppedGroups[]> {
  const rows = await queryLimitRows(db, tables, findStoppedGroupsQuery(tables, queues));
  return rows.map(({ queue, groups, first }) => ({
    queue: String(queue),
    groups: Number(groups),
    first: String(first),
  }));
}

export function findStoppedGroupsQuery(
  { queueHolds }: Pick<LimitTables, 'queueHolds'>,
  queues: readonly string[],
): SQL {
  return sql`
    select h.queue, count(distinct h.group_key)::float8 as groups, min(h.group_key) as first
    from ${queueHolds} as h
    where h.until = 'infinity' and h.worker_id is null
      and (h.queue in (select jsonb_array_elements_text(${JSON.stringify(queues)}::text::jsonb))) is true
    group by h.queue order by h.queue`;
}
