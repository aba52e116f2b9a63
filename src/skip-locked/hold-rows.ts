import { getTableColumns } from 'drizzle-orm';
import type { PgTable, PgUpdateSetSource } from 'drizzle-orm/pg-core';
import { checkCall } from './check-call.ts';
import type { ExclusiveStrength, WhichRows } from './lock-options.ts';
import type { QueryBuilders } from './query-builders.ts';
import { namedFields, type RowFields } from './row-fields.ts';
import type { RowsQuery } from './rows-query.ts';
import { shown } from './shown.ts';
import { isTaken } from './taken-rows.ts';

/** The options of {@link holdRows}. */
export interface HoldRowsOptions<TTable extends PgTable, TFields extends RowFields> extends WhichRows {
  /** Marks a row as held, as in Drizzle's `update(table).set(…)`. A held row must no longer match `where`. */
  set: PgUpdateSetSource<TTable>;
  /** What to return of each row, as it is after the update. @default all columns */
  returning?: TFields | undefined;
  /** Use `update` when `set` changes columns that foreign keys refer to. @default 'no key update' */
  strength?: ExclusiveStrength | undefined;
}

/**
 * Marks the first rows that are not locked, and returns them: `UPDATE … SET … RETURNING`, one statement.
 *
 * ```ts
 * const [item] = await holdRows(db, items, {
 *   set: { startedAt: sql`now()` },
 *   where: isNull(items.startedAt),
 *   orderBy: items.createdAt,
 * });
 * ```
 *
 * Outside a transaction the mark is the hold: no transaction stays open during the work, and a holder that
 * dies leaves a row that looks held until it is reset. Inside a transaction the row is also locked until it
 * ends.
 *
 * **Under concurrency.** However many holders there are, one of them marks each row. No holder waits for
 * another, and none marks more than `limit`. A row that changed since the statement began is checked again
 * before it is taken. With a limit above 1 the rows come back in no order: sort them.
 *
 * Above `read committed` Postgres may refuse it with a serialization failure (SQLSTATE 40001), as any write.
 *
 * From Phil Sorber, "You keep using that query" (2012), with `SKIP LOCKED` for its lock.
 *
 * @throws RangeError | TypeError when an argument or option is wrong or the table declares no primary key
 */
export function holdRows<TTable extends PgTable, TFields extends RowFields = TTable['_']['columns']>(
  db: QueryBuilders,
  table: TTable,
  options: HoldRowsOptions<TTable, TFields>,
  // NoInfer: otherwise TypeScript infers the fields from an expected row type and misses their default.
): RowsQuery<NoInfer<TFields>> {
  checkCall('holdRows', db, table, options);
  const { set, returning, strength = 'no key update', ...which } = options;
  if (typeof set !== 'object' || set === null) {
    throw new TypeError(`holdRows: set must be an object, as in update(table).set(…); got ${shown(set)}`);
  }
  const query = db
    .update(table)
    .set(set)
    .where(isTaken('holdRows', table, which, strength))
    .returning(namedFields(returning ?? getTableColumns(table)));
  // TypeScript cannot connect these fields with the type parameter's default.
  return query as unknown as RowsQuery<TFields>;
}
