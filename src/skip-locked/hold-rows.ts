import { getTableColumns } from 'drizzle-orm';
import type { PgTable, PgUpdateSetSource } from 'drizzle-orm/pg-core';
import { checkCall } from './check-call.ts';
import type { ExclusiveStrength, WhichRows } from './lock-options.ts';
import type { QueryBuilders } from './query-builders.ts';
import { namedFields, type RowFields } from './row-fields.ts';
import type { RowsQuery } from './rows-query.ts';
import { shown } from './shown.ts';
import { isTaken } from './taken-rows.ts';

/** Settings of {@link holdRows}. */
export interface HoldRowsOptions<TTable extends PgTable, TFields extends RowFields> extends WhichRows {
  /** What marks a row as held: as in Drizzle's `update(table).set(…)`. A held row must no longer match `where`. */
  set: PgUpdateSetSource<TTable>;
  /** What to answer of each row, as it is after the update. @default all columns */
  returning?: TFields | undefined;
  /**
   * `update`, when `set` changes columns that foreign keys refer to.
   * @default 'no key update'
   */
  strength?: ExclusiveStrength | undefined;
}

/**
 * Marks the first rows that nobody has locked, and answers them: `UPDATE … SET … RETURNING`, one statement.
 *
 * ```ts
 * const [item] = await holdRows(db, items, {
 *   set: { startedAt: sql`now()` },
 *   where: isNull(items.startedAt),
 *   orderBy: items.createdAt,
 * });
 * ```
 *
 * Outside a transaction the mark is the hold: the work may take its time without keeping a transaction open, and a holder that
 * dies leaves a row that looks held until somebody decides otherwise. Inside one, the row's lock is a second hold, which ends with
 * the transaction.
 *
 * **Under concurrency.** Each row is marked by one of any number of holders; none waits for another, and none marks more than
 * `limit`. A row that was changed since the statement began is looked at again, as it is now, before it is taken. With a limit above 1
 * the rows come back in no order: sort them.
 *
 * In isolation levels above `read committed` Postgres may answer with a serialization failure (SQLSTATE 40001), as for any write.
 *
 * From Phil Sorber, "You keep using that query" (2012), with the lock that he looks back on.
 *
 * @throws RangeError | TypeError when an argument or option is wrong or the table declares no primary key
 */
export function holdRows<TTable extends PgTable, TFields extends RowFields = TTable['_']['columns']>(
  db: QueryBuilders,
  table: TTable,
  options: HoldRowsOptions<TTable, TFields>,
  // NoInfer: where a row type is expected, TypeScript would guess the fields from that and miss their default.
): RowsQuery<NoInfer<TFields>> {
  checkCall('holdRows', db, table, options);
  const { set, returning, strength = 'no key update', ...which } = options;
  if (typeof set !== 'object' || set === null) {
    throw new TypeError(`holdRows: set must be an object, as in update(table).set(…); got ${shown(set)}`);
  }
  return (
    db
      .update(table)
      .set(set)
      .where(isTaken('holdRows', table, which, strength))
      // The default belongs to the type parameter's own default, which TypeScript cannot connect with the value.
      .returning(namedFields(returning ?? (getTableColumns(table) as TFields)))
  );
}
