import { type SQL, sql } from 'drizzle-orm';
import { notifyWorkers } from '../../../core/queries/presence/notify-workers.ts';
import type { Executor } from '../../../core/sql/executor.ts';
import { REQUESTED } from '../../../core/sql/wake-channel.ts';
import type { LimitRow } from '../settings/limit-record.ts';
import { type GroupTables, queryLimitRows } from '../sql/limit-tables.ts';
import { notedForLimit } from '../sql/limited-groups.ts';

/** Which limit that was set. */
export type SetLimitName = Pick<LimitRow, 'queue' | 'kind' | 'group'>;

/**
 * Removes a limit that was set at run time, so that what the code declares holds again. What workers have of
 * it stays theirs.
 *
 * **Under concurrency.** Waits for another open transaction that has just set the same limit.
 */
export async function removeLimit(
  db: Executor,
  tables: GroupTables,
  limit: SetLimitName,
  channel: string | undefined,
): Promise<void> {
  const rows = await queryLimitRows(db, tables, removeLimitQuery(tables, limit));
  if (rows.length > 0 && channel !== undefined) await notifyWorkers(db, tables, REQUESTED, channel);
}

export function removeLimitQuery(tables: GroupTables, limit: SetLimitName): SQL {
  const { queue, kind, group } = limit;
  const remove = sql`
    delete from ${tables.queueLimits} as s
    where s.queue = ${queue} and s.kind = ${kind} and s.group_key = ${group}
    returning s.queue`;
  if (group === '') return remove;
  return sql`
    with s as (${remove}
    )${notedForLimit(tables, limit)}
    select queue from s`;
}
