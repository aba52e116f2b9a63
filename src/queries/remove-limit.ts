import { type SQL, sql } from 'drizzle-orm';
import type { Executor } from '../sql/executor.ts';
import { type LeaseTables, type LimitName, queryLimitRows } from '../sql/limit-tables.ts';
import { REQUESTED } from '../sql/wake-channel.ts';
import { notifyWorkers } from './notify-workers.ts';

/** Which limit that was set; with the `group` '' it is of a queue or a kind. */
export interface SetLimitName extends LimitName {
  readonly group: string;
}

/**
 * Removes a limit that was set at run time, so that what the code declares holds again; returns whether there
 * was one. What workers have of it stays theirs.
 *
 * **Under concurrency.** Waits for another open transaction that has just set the same limit.
 */
export async function removeLimit(
  db: Executor,
  tables: LeaseTables,
  limit: SetLimitName,
  channel: string | undefined,
): Promise<boolean> {
  const rows = await queryLimitRows(db, tables, removeLimitQuery(tables, limit));
  if (rows.length === 0) return false;
  if (channel !== undefined) await notifyWorkers(db, tables, REQUESTED, channel);
  return true;
}

export function removeLimitQuery({ queueLimits }: LeaseTables, { queue, kind, group }: SetLimitName): SQL {
  return sql`
    delete from ${queueLimits} as s where s.queue = ${queue} and s.kind = ${kind} and s.group_key = ${group}
    returning s.queue`;
}
