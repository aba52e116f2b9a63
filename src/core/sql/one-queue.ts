import { type SQL, sql } from 'drizzle-orm';
import type { QueueTables } from '../schema/create-queue-tables.ts';
import { isDistributed } from './server-facts.ts';

/** What one statement can ask about: everything, or on Citus only one queue, which is on one shard. */
export function perStatement<T extends { readonly queue: string }>(
  tables: QueueTables,
  items: readonly T[],
): readonly (readonly T[])[] {
  if (!isDistributed(tables)) return [items];
  const byQueue = new Map<string, T[]>();
  for (const item of items) {
    const same = byQueue.get(item.queue) ?? [];
    byQueue.set(item.queue, same);
    same.push(item);
  }
  return [...byQueue.values()];
}

/**
 * The queue of a statement's rows, for its conditions: a constant where all are of one queue, by which Citus
 * finds the shard and Postgres the partition; otherwise the column that has it.
 */
export function queueOf(items: readonly { readonly queue: string }[], column: string): SQL {
  const [first] = items;
  const one = first !== undefined && items.every(({ queue }) => queue === first.queue);
  return one ? sql`${first.queue}::text` : sql.raw(column);
}
