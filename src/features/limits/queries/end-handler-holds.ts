import { type SQL, sql } from 'drizzle-orm';
import type { Runner } from '../../../core/sql/executor.ts';
import { arrayText, type Holder } from '../../../core/sql/fence.ts';
import type { EndedJob } from '../../../core/worker/settle/handler-holds.ts';
import { type GroupTables, type LimitTables, queryLimitRows } from '../sql/limit-tables.ts';
import { insertNotes } from '../sql/note-groups.ts';

/**
 * Frees the slots that jobs of one queue still have in their groups, after handlers that had ended them by
 * `complete(tx)` have ended too, and notes these groups for claims.
 *
 * **Under concurrency.** It deletes only rows of this worker, and no other statement wants these while it
 * lives. May be repeated: what is deleted already is passed over.
 */
export async function endHandlerHolds(
  db: Runner,
  tables: GroupTables,
  holder: Holder,
  jobs: readonly EndedJob[],
): Promise<void> {
  await queryLimitRows(db, tables, endHandlerHoldsQuery(tables, holder, jobs));
}

export function endHandlerHoldsQuery(
  tables: LimitTables,
  { queue, workerId }: Holder,
  jobs: readonly EndedJob[],
): SQL {
  const ids = arrayText(jobs.map(({ id }) => id));
  const groups = JSON.stringify([...new Set(jobs.map(({ group }) => group))]);
  return sql`
    with ended as (
      delete from ${tables.queueHolds} as h
      where h.queue = ${queue}
        and h.group_key = any(array(select jsonb_array_elements_text(${groups}::text::jsonb)))
        and h.job_id = any(array(select unnest(${ids}::text::int8[]))) and h.worker_id = ${workerId}::int8
      returning h.group_key
    )${insertNotes(
      tables,
      sql`
        select distinct ${queue}::text as queue, statement_timestamp() as due_at, e.group_key
        from ended as e`,
    )}`;
}
