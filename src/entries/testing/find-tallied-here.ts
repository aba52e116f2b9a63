import { sql } from 'drizzle-orm';
import type { Executor, Queue, Workflows } from '../../index.ts';
import { queryRows } from '../../internal.ts';
import { writtenHere } from './written-here.ts';

/**
 * The batches with ends that this transaction has written and that are not counted yet. What others have
 * ended is theirs to count: a fold would make due here what waits for it, and lock it.
 */
export async function findTalliedHere(db: Executor, queue: Queue): Promise<number[]> {
  // `createQueue` has put it there, or nothing.
  const workflows = queue.workflows as Workflows | undefined;
  if (workflows === undefined) return [];
  const { queueTallies } = workflows.tables;
  const rows = await queryRows(
    db,
    queue.tables,
    sql`select distinct t.batch_id from ${queueTallies} as t where ${writtenHere('t')}`,
  );
  return rows.map(({ batch_id }) => Number(batch_id));
}
