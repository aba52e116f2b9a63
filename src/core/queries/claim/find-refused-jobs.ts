import { type SQL, sql } from 'drizzle-orm';
import type { QueueTables } from '../../schema/create-queue-tables.ts';
import { dateOf, epochMs } from '../../sql/epoch-ms.ts';
import { queryRows, type Runner } from '../../sql/executor.ts';
import { arrayText } from '../../sql/fence.ts';

/** A job whose claim the database refuses. */
export interface RefusedJob {
  readonly id: number;
  readonly kind: string;
  readonly priority: number;
  readonly runAt: Date;
  readonly attempt: number;
}

/**
 * What is known of some jobs of a queue, those without the ones that are gone.
 *
 * **Under concurrency.** A plain read.
 */
export async function findRefusedJobs(
  db: Runner,
  tables: QueueTables,
  jobs: { readonly queue: string; readonly ids: readonly number[] },
): Promise<RefusedJob[]> {
  const rows = await queryRows(db, tables, findRefusedJobsQuery(tables, jobs));
  return rows.map((row) => ({
    id: Number(row.id),
    kind: String(row.kind),
    priority: Number(row.priority),
    runAt: dateOf(row.run_at),
    attempt: Number(row.attempt),
  }));
}

export function findRefusedJobsQuery(
  { queueJobs }: QueueTables,
  { queue, ids }: { readonly queue: string; readonly ids: readonly number[] },
): SQL {
  return sql`
    select j.id, j.kind, j.priority, ${epochMs('j.run_at')} as run_at, j.attempt from ${queueJobs} as j
    where j.queue = ${queue} and j.id = any(array(select unnest(${arrayText(ids)}::text::int8[])))`;
}
