import { type SQL, sql } from 'drizzle-orm';
import { type Executor, queryRows } from '../../../core/sql/executor.ts';
import { BATCHES_ENTRY, type TablesOfBatches } from '../sql/batch-tables.ts';

/**
 * Says how many members the same transaction has added to a batch; whether there is such a batch, of a flow
 * or of `enqueueBatch`. What waits for its end waits for them, too.
 *
 * **Under concurrency.** It locks nothing, so a fold counts beside any number of these. It is sent for a held
 * member, in the transaction that then locks the row of that one to record its step. If the member has ended
 * by then, all of it is undone. Otherwise its end commits later, and a fold that sees it sees this tally, so
 * the batch cannot end before. The fold that counts the new members also asks them to end where they are to.
 */
export async function growBatch(
  tx: Executor,
  tables: TablesOfBatches,
  id: number,
  members: number,
): Promise<boolean> {
  const query = growBatchQuery(tables, id, members);
  return (await queryRows(tx, tables, query, { entry: BATCHES_ENTRY })).length > 0;
}

/** A child has a batch of which its parent knows all members, so that stays as it is. */
export function growBatchQuery(
  { queueBatches, queueWaits, queueTallies }: TablesOfBatches,
  id: number,
  members: number,
): SQL {
  return sql`
    insert into ${queueTallies} (batch_id, added)
    select b.id, ${members}::int4 from ${queueBatches} as b
    where b.id = ${id}::int8 and b.ended_at is null and not exists (
      select from ${queueWaits} as w where w.batch_id = b.id and w.policy in ('parent', 'detached')
    )
    returning batch_id`;
}
