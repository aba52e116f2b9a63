import { getTableColumns } from 'drizzle-orm';
import type { PgTable } from 'drizzle-orm/pg-core';
import { checkCall } from './check-call.ts';
import type { ExclusiveStrength, WhichRows } from './lock-options.ts';
import type { QueryBuilders } from './query-builders.ts';
import { namedFields, type RowFields } from './row-fields.ts';
import type { RowsQuery } from './rows-query.ts';
import { isTaken } from './taken-rows.ts';

/** Settings of {@link popRows}. */
export interface PopRowsOptions<TFields extends RowFields> extends WhichRows {
  /** What to answer of each row. @default all columns */
  returning?: TFields | undefined;
  /**
   * With `no key update`, a row that an open transaction has just referred to by a foreign key is not skipped, but waited for.
   * @default 'update'
   */
  strength?: ExclusiveStrength | undefined;
}

/**
 * Deletes the first rows that nobody has locked, and answers them: `DELETE … RETURNING`, one statement.
 *
 * ```ts
 * const [job] = await popRows(db, queue, { orderBy: queue.index });
 * ```
 *
 * Outside a transaction a row is gone once it is answered, and its work with it if the process dies. Inside one, the row comes back
 * when the transaction rolls back, and until it ends nobody else sees or gets the row.
 *
 * **Under concurrency.** Each row is answered once, however many pop at the same time; none waits for another, and none takes more
 * than `limit`. Fewer than `limit` means that no more rows matched *and* were free. With a limit above 1 the rows come back in no
 * order: sort them. An order by columns that others are changing just then is the order before the change.
 *
 * In isolation levels above `read committed` Postgres may answer with a serialization failure (SQLSTATE 40001), as for any write.
 *
 * From Tomás Farías Santana, "SKIP LOCKED can be used to implement a queue in PostgreSQL".
 *
 * @throws RangeError | TypeError when an argument or option is wrong or the table declares no primary key
 */
export function popRows<TTable extends PgTable, TFields extends RowFields = TTable['_']['columns']>(
  db: QueryBuilders,
  table: TTable,
  options: PopRowsOptions<TFields> = {},
  // NoInfer: where a row type is expected, TypeScript would guess the fields from that and miss their default.
): RowsQuery<NoInfer<TFields>> {
  checkCall('popRows', db, table, options);
  const { returning, strength = 'update', ...which } = options;
  return (
    db
      .delete(table)
      .where(isTaken('popRows', table, which, strength))
      // The default belongs to the type parameter's own default, which TypeScript cannot connect with the value.
      .returning(namedFields(returning ?? (getTableColumns(table) as TFields)))
  );
}
