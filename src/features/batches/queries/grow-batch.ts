import { type SQL, sql } from 'drizzle-orm';
import { type Executor, queryRows } from '../../../core/sql/executor.ts';
import { BATCHES_ENTRY, type TablesOfBatches } from '../sql/batch-tables.ts';

/**
 * Says how many members the same transaction has added to a batch; whether there is such a batch, of a flow
 * or of `enqueueBatch`. What waits for its end waits for them, too.
 *
 * **Under concurrency.** Sent for a member that is held, so the batch cannot end before: the end of that
 * member commits later, and a fold that sees it sees this tally. It keeps a fold of the batch waiting until
 * the commit. So a cancel of the flow is either seen here, and said again for the new members, or its fold
 * comes later and finds them.
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
    with locked as materialized (
      select b.id, b.cancel_reason from ${queueBatches} as b
      where b.id = ${id}::int8 and b.ended_at is null and not exists (
        select from ${queueWaits} as w where w.batch_id = b.id and w.policy in ('parent', 'detached')
      )
      for share of b
    )
    insert into ${queueTallies} (batch_id, added, cancel_reason)
    select id, ${members}::int4, cancel_reason from locked
    returning batch_id`;
}
