import { type SQL, sql } from 'drizzle-orm';
import type { QueueTables } from '../../schema/create-queue-tables.ts';
import { dateOf, epochMs } from '../../sql/epoch-ms.ts';
import { type Executor, queryRows } from '../../sql/executor.ts';

/** A paused queue: none of its jobs begins until it is resumed. */
export interface PausedQueue {
  readonly queue: string;
  /** By the database's clock. */
  readonly pausedAt: Date;
}

export async function findPauses(db: Executor, tables: QueueTables): Promise<PausedQueue[]> {
  const rows = await queryRows(db, tables, findPausesQuery(tables));
  return rows.map((row) => ({ queue: String(row.queue), pausedAt: dateOf(row.paused_at) }));
}

export function findPausesQuery({ queuePauses }: QueueTables): SQL {
  return sql`
    select p.queue, ${epochMs('p.paused_at')} as paused_at from ${queuePauses} as p order by p.queue`;
}
