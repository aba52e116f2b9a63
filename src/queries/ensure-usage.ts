import { type SQL, sql } from 'drizzle-orm';
import { CONTROL_ENTRY } from '../sql/control-entry.ts';
import { queryRows, type Runner } from '../sql/executor.ts';
import type { GroupTables } from '../sql/grouping.ts';

/**
 * Makes the rows that count what is used of the rates of one queue and its kinds: without them nothing
 * starts.
 *
 * **Under concurrency.** Any number of workers may do it at once; a row that is there stays as it is.
 */
export async function ensureUsage(
  db: Runner,
  tables: GroupTables,
  queue: string,
  kinds: readonly string[],
): Promise<void> {
  await queryRows(db, tables, ensureUsageQuery(tables, queue, kinds), { entry: CONTROL_ENTRY });
}

export function ensureUsageQuery({ queueUsage }: GroupTables, queue: string, kinds: readonly string[]): SQL {
  return sql`
    insert into ${queueUsage} (queue, kind)
    select ${queue}::text, k.kind
    from jsonb_array_elements_text(${JSON.stringify(kinds)}::text::jsonb) as k(kind)
    order by k.kind
    on conflict (queue, kind) do nothing`;
}
