import { type SQL, sql } from 'drizzle-orm';
import { type Executor, queryRows } from '../../../core/sql/executor.ts';
import { arrayText } from '../../../core/sql/fence.ts';
import { quotedName } from '../../../core/sql/quoted-name.ts';
import { BATCHES_ENTRY, type TablesOfBatches } from '../sql/batch-tables.ts';

/**
 * Makes batches of these numbers of members, which the same transaction is to insert; returns their ids, in
 * order. With `asFlow` they are one flow, whose id is that of the last.
 *
 * **Under concurrency.** No other transaction sees them before the transaction commits.
 */
export async function openBatches(
  tx: Executor,
  tables: TablesOfBatches,
  members: readonly number[],
  asFlow = false,
): Promise<number[]> {
  const rows = await queryRows(tx, tables, openBatchesQuery(tables, members, asFlow), {
    entry: BATCHES_ENTRY,
  });
  return rows.map(({ id }) => Number(id));
}

/** Ids are drawn in the order of the input. One without members has ended. */
export function openBatchesQuery(
  { queueBatches }: TablesOfBatches,
  members: readonly number[],
  asFlow: boolean,
): SQL {
  return sql`
    with numbered as materialized (
      select nextval(s.sequence) as id, m.members
      from (select pg_get_serial_sequence(${quotedName(queueBatches)}, 'id')::regclass as sequence) as s, (
        select members from unnest(${arrayText(members)}::text::int8[]) with ordinality as m(members, place)
        order by place
      ) as m
    )
    insert into ${queueBatches} (id, flow_id, total, pending, ended_at) overriding system value
    select n.id, ${asFlow ? sql`(select max(id) from numbered)` : sql`null::int8`}, n.members, n.members,
      case when n.members = 0 then statement_timestamp() end
    from numbered as n order by n.id
    returning id`;
}
