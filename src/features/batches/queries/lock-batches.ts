import { type SQL, sql } from 'drizzle-orm';
import { type Executor, queryRows } from '../../../core/sql/executor.ts';
import { arrayText } from '../../../core/sql/fence.ts';
import { BATCHES_ENTRY, type TablesOfBatches } from '../sql/batch-tables.ts';

/**
 * Locks batches until the transaction ends. `false`: another transaction has locked one of them, as a fold
 * and a redrive of the flow do.
 *
 * **Under concurrency.** Never waits, so it can come after the lock of a job: all others lock batches first.
 */
export async function lockBatches(
  tx: Executor,
  tables: TablesOfBatches,
  ids: readonly number[],
): Promise<boolean> {
  const [row] = await queryRows(tx, tables, lockBatchesQuery(tables, ids), { entry: BATCHES_ENTRY });
  return row?.locked === row?.found;
}

export function lockBatchesQuery({ queueBatches }: TablesOfBatches, ids: readonly number[]): SQL {
  const wanted = sql`b.id = any(${arrayText(ids)}::text::int8[])`;
  return sql`
    with locked as materialized (
      select b.id from ${queueBatches} as b where ${wanted}
      order by b.id for no key update skip locked
    )
    select (select count(*) from locked)::int4 as locked, count(*)::int4 as found
    from ${queueBatches} as b where ${wanted}`;
}
