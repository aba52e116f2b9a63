import { type SQL, sql } from 'drizzle-orm';
import type { QueueTables } from '../schema/create-queue-tables.ts';
import type { RawRow } from './executor.ts';
import { walkIndex } from './walk-index.ts';

/**
 * Begins a recursive statement with two lists: `band`, each priority and queue with jobs outside of groups,
 * and `grouped`, each queue with jobs in groups. Without `priority >= 0`, which always holds, the planner
 * does not use the index.
 */
export function allBands(tables: QueueTables): SQL {
  const plain = sql`j.priority >= 0 and j.group_key is null`;
  const bands = walkIndex(tables, { name: 'band', by: ['priority', 'queue'], where: plain });
  return sql`with recursive ${bands},
    ${walkIndex(tables, { name: 'grouped', by: ['queue'], where: sql`j.group_key is not null` })}`;
}

/** Whether lists that were cut at `limit` had fewer entries. Each row names its `list`, and is one entry. */
export function areWhole(rows: readonly RawRow[], limit: number): boolean {
  const entries = new Map<unknown, number>();
  for (const { list } of rows) entries.set(list, (entries.get(list) ?? 0) + 1);
  return [...entries.values()].every((length) => length < limit);
}
