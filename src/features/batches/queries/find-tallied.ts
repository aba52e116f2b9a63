import { type SQL, sql } from 'drizzle-orm';
import { queryRows, type Runner } from '../../../core/sql/executor.ts';
import { arrayText } from '../../../core/sql/fence.ts';
import { BATCHES_ENTRY, type TablesOfBatches } from '../sql/batch-tables.ts';

/** The most tallies that are looked at. */
const MOST = 10_000;

/**
 * Batches with tallies that are not counted yet, but for some: those may have more than are looked at.
 *
 * **Under concurrency.** A plain read.
 */
export async function findTallied(
  db: Runner,
  tables: TablesOfBatches,
  but: readonly number[] = [],
): Promise<number[]> {
  const rows = await queryRows(db, tables, findTalliedQuery(tables, but), { entry: BATCHES_ENTRY });
  return rows.map(({ batch_id }) => Number(batch_id));
}

export function findTalliedQuery({ queueTallies }: TablesOfBatches, but: readonly number[]): SQL {
  return sql`
    select distinct t.batch_id from (
      select batch_id from ${queueTallies}
      where batch_id <> all(${arrayText(but)}::text::int8[]) limit ${MOST}::int4
    ) as t`;
}
