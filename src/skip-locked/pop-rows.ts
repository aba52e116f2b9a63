import { getTableColumns } from 'drizzle-orm';
import type { PgTable } from 'drizzle-orm/pg-core';
import { checkCall } from './check-call.ts';
import type { ExclusiveStrength, WhichRows } from './lock-options.ts';
import type { QueryBuilders } from './query-builders.ts';
import { namedFields, type RowFields } from './row-fields.ts';
import type { RowsQuery } from './rows-query.ts';
import { isTaken } from './taken-rows.ts';

/** The options of {@link popRows}. */
export interface PopRowsOptions<TFields extends RowFields> extends WhichRows {
  /** What to return of each row. @default all columns */
  returning?: TFields | undefined;
  /**
   * With `no key update`, the pop waits for an open transaction that refers to the row by a foreign key; with
   * `update` it skips the row. @default 'update'
   */
  strength?: ExclusiveStrength | undefined;
}

/**
 * Deletes the first rows that are not locked, and returns them: `DELETE … RETURNING`, one statement.
 *
 * ```ts
 * const [job] = await popRows(db, queue, { orderBy: queue.index });
 * ```
 *
 * Outside a transaction a row is gone once it is returned, and its work is lost if the process dies. Inside
 * one, the row comes back when the transaction rolls back, and until it ends no other transaction gets the
 * row.
 *
 * **Under concurrency.** However many calls pop at the same time, each row is returned once. No call waits
 * for another, and none takes more than `limit`. Fewer than `limit` means that no more rows matched *and*
 * were free. With a limit above 1 the rows come back in no order: sort them. Where others are changing the
 * columns of `orderBy`, the order is the one before the change.
 *
 * Above `read committed` Postgres may refuse it with a serialization failure (SQLSTATE 40001), as any write.
 *
 * From Tomás Farías Santana, "SKIP LOCKED can be used to implement a queue in PostgreSQL".
 *
 * @throws RangeError | TypeError when an argument or option is wrong or the table declares no primary key
 */
export function popRows<TTable extends PgTable, TFields extends RowFields = TTable['_']['columns']>(
  db: QueryBuilders,
  table: TTable,
  options: PopRowsOptions<TFields> = {},
  // NoInfer: otherwise TypeScript infers the fields from an expected row type and misses their default.
): RowsQuery<NoInfer<TFields>> {
  checkCall('popRows', db, table, options);
  const { returning, strength = 'update', ...which } = options;
  const query = db
    .delete(table)
    .where(isTaken('popRows', table, which, strength))
    .returning(namedFields(returning ?? getTableColumns(table)));
  // TypeScript cannot connect these fields with the type parameter's default.
  return query as unknown as RowsQuery<TFields>;
}
