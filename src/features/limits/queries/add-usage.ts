import { type SQL, sql } from 'drizzle-orm';
import type { Runner } from '../../../core/sql/executor.ts';
import { type LeaseTables, type LimitName, queryLimitRows } from '../sql/limit-tables.ts';

/**
 * Makes the row in which the workers of a limit keep what they use of it, unless there is one.
 *
 * **Under concurrency.** Of several that make it at once, one does; the others wait for its commit.
 */
export async function addUsage(db: Runner, tables: LeaseTables, limit: LimitName): Promise<void> {
  await queryLimitRows(db, tables, addUsageQuery(tables, limit));
}

export function addUsageQuery({ queueUsage }: LeaseTables, { queue, kind }: LimitName): SQL {
  return sql`
    insert into ${queueUsage} (queue, kind) values (${queue}, ${kind}) on conflict (queue, kind) do nothing`;
}
