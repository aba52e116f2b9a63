import { type SQL, sql } from 'drizzle-orm';
import { queryRows, type Runner } from '../../../core/sql/executor.ts';
import { BATCHES_ENTRY, type TablesOfBatches } from '../sql/batch-tables.ts';

/** The most tallies that are looked at. */
const MOST = 10_000;

/**
 * Batches with tallies that are not counted yet.
 *
 * **Under concurrency.** A plain read.
 */
export async function findTallied(db: Runner, tables: TablesOfBatches): Promise<number[]> {
  const rows = await queryRows(db, tables, findTalliedQuery(tables), { entry: BATCHES_ENTRY });
  return rows.map(({ batch_id }) => Number(batch_id));
}

export function findTalliedQuery({ queueTallies }: TablesOfBatches): SQL {
  return sql`
    select distinct t.batch_id from (select batch_id from ${queueTallies} limit ${MOST}::int4) as t`;
}
