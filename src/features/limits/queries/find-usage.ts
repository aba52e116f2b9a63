import { type SQL, sql } from 'drizzle-orm';
import type { Executor } from '../../../core/sql/executor.ts';
import { type LeaseTables, queryLimitRows } from '../sql/limit-tables.ts';

/** What is in use of the limits of a queue and of its kinds, by kind; '' is the queue. A plain read. */
export async function findUsage(
  db: Executor,
  tables: LeaseTables,
  queue: string,
): Promise<ReadonlyMap<string, number>> {
  const rows = await queryLimitRows(db, tables, findUsageQuery(tables, queue));
  return new Map(rows.map(({ kind, slots }) => [String(kind), Number(slots)]));
}

export function findUsageQuery({ queueUsage, queueWorkers }: LeaseTables, queue: string): SQL {
  return sql`
    select u.kind, (
      select coalesce(sum((e.lease ->> 0)::int8), 0) from jsonb_each(u.leases) as e(worker, lease)
      where e.worker in (select w.id::text from ${queueWorkers} as w)
    )::float8 as slots
    from ${queueUsage} as u where u.queue = ${queue}`;
}
