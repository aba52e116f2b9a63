import { type SQL, sql } from 'drizzle-orm';
import type { QueueTables } from '../../schema/create-queue-tables.ts';
import { msBetween, msOf } from '../../sql/epoch-ms.ts';
import { queryRows, type Runner } from '../../sql/executor.ts';
import { throughIndex } from '../../sql/through-index.ts';

/** A job that has been due for long. */
export interface FirstDue {
  readonly id: number;
  readonly kind: string;
  readonly dueMs: number;
}

/**
 * The job of one priority of a queue that has been due for longest and that no worker holds. Jobs of groups
 * are left out.
 *
 * **Under concurrency.** A plain read of one snapshot, by the index of the claims.
 */
export async function findFirstDue(
  db: Runner,
  tables: QueueTables,
  band: { readonly queue: string; readonly priority: number },
): Promise<FirstDue | undefined> {
  const [row] = await queryRows(db, tables, findFirstDueQuery(tables, band));
  return row && { id: Number(row.id), kind: String(row.kind), dueMs: msOf(row.due_ms) };
}

export function findFirstDueQuery(
  { queueJobs }: QueueTables,
  { queue, priority }: { readonly queue: string; readonly priority: number },
): SQL {
  return sql`
    select j.id, j.kind, ${msBetween('j.run_at', 'statement_timestamp()')} as due_ms
    from ${queueJobs} as j
    where j.queue = ${queue} and j.priority = ${priority}::int2 and ${throughIndex(sql`j.group_key is null`)}
      and j.run_at <= statement_timestamp() and j.worker_id is null
    order by j.run_at, j.id limit 1`;
}
