import { type SQL, sql } from 'drizzle-orm';
import { queryRows, type Runner } from '../../../core/sql/executor.ts';
import { arrayText } from '../../../core/sql/fence.ts';
import { planAnew } from '../../../core/sql/plan-anew.ts';
import { BATCHES_ENTRY, type TablesOfBatches } from '../sql/batch-tables.ts';

/** The most batches that are found. */
export const MOST_TALLIED = 10_000;

/**
 * Batches with tallies that are not counted yet, but for some: those may have many tallies.
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

/** From batch to batch by the index, past all tallies of each: a batch may have a million. */
export function findTalliedQuery({ queueTallies }: TablesOfBatches, but: readonly number[]): SQL {
  return sql`
    with recursive tallied as (
      (select t.batch_id from ${planAnew()} cross join ${queueTallies} as t order by t.batch_id limit 1)
      union all
      select n.batch_id from tallied as l cross join lateral (
        select t.batch_id from ${queueTallies} as t where t.batch_id > l.batch_id order by t.batch_id limit 1
      ) as n
    )
    select batch_id from tallied
    where batch_id not in (select unnest(${arrayText(but)}::text::int8[])) limit ${MOST_TALLIED}::int4`;
}
