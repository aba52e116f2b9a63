import { type SQL, sql } from 'drizzle-orm';
import type { PgTable } from 'drizzle-orm/pg-core';
import type { QueueTables } from '../../schema/create-queue-tables.ts';
import { queryRows, type Runner } from '../../sql/executor.ts';
import { quotedName } from '../../sql/quoted-name.ts';
import { hasCitus } from '../presence/is-citus.ts';

/**
 * How many bytes the tables of figures have on disk, with their indexes and partitions; `undefined` on Citus,
 * where they are on other nodes.
 *
 * **Under concurrency.** It waits for a transaction that locks one of the tables exclusively.
 *
 * @param metrics left out where it is missing
 */
export async function sizeOfTables(
  db: Runner,
  tables: QueueTables,
  metrics?: PgTable,
): Promise<number | undefined> {
  const [row] = await queryRows(db, tables, sizeOfTablesQuery(tables, metrics));
  return typeof row?.bytes === 'number' ? row.bytes : undefined;
}

export function sizeOfTablesQuery(
  { queueJobs, queueResults, queueWorkers }: QueueTables,
  metrics?: PgTable,
): SQL {
  const read = [queueJobs, queueResults, queueWorkers, ...(metrics === undefined ? [] : [metrics])];
  const named = read.map((table) => sql`select to_regclass(${quotedName(table)})::oid as id`);
  return sql`
    with recursive part as (
      (${sql.join(named, sql` union all `)})
      union all
      select i.inhrelid from pg_inherits as i join part as p on i.inhparent = p.id
    )
    select case when ${hasCitus} then null
      else (select sum(pg_total_relation_size(p.id)) from part as p) end::float8 as bytes`;
}
