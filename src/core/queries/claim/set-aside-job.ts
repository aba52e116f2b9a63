import { type SQL, sql } from 'drizzle-orm';
import type { ErrorRecord } from '../../job/describe-error.ts';
import type { QueueTables } from '../../schema/create-queue-tables.ts';
import { queryRows, type Runner } from '../../sql/executor.ts';
import { amongFree, freeRows } from '../../sql/free-rows.ts';
import { withError, withTime } from '../../sql/recorded-error.ts';

/**
 * Parks a due, unheld job without an end time, and records why. Returns whether it did. `queue.runNow` makes
 * the job due again.
 *
 * **Under concurrency.** A row that is locked or held by now is left alone. It waits for no other
 * transaction.
 *
 * @throws the database error, where the database refuses any change of the row
 */
export async function setAsideJob(
  db: Runner,
  tables: QueueTables,
  job: { readonly queue: string; readonly id: number; readonly error: ErrorRecord },
): Promise<boolean> {
  const rows = await queryRows(db, tables, setAsideJobQuery(tables, job));
  return rows.length > 0;
}

export function setAsideJobQuery(
  tables: QueueTables,
  { queue, id, error }: { readonly queue: string; readonly id: number; readonly error: ErrorRecord },
): SQL {
  const { queueJobs } = tables;
  const due = sql`j.queue = ${queue} and j.id = ${id}::int8 and j.worker_id is null
        and j.run_at <= statement_timestamp()`;
  return sql`
    with i as materialized (
      select ${withTime(sql`${JSON.stringify(error)}::text::jsonb`)} as error
    ),
    ${freeRows(tables, due)}
    update ${queueJobs} as j set run_at = 'infinity', errors = ${withError(sql`j.errors`, sql`i.error`)}
    from i
    where ${amongFree(queue)}
    returning j.id`;
}
