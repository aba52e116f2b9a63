import { getTableColumns, is, SQL, sql } from 'drizzle-orm';
import { type PgTable, QueryBuilder } from 'drizzle-orm/pg-core';
import { checkCall } from './check-call.ts';
import { type LockStrength, lockingClauses, lockOf, type WhichRows } from './lock-options.ts';
import type { QueryBuilders } from './query-builders.ts';
import { namedFields, type RowFields } from './row-fields.ts';
import type { RowsQuery } from './rows-query.ts';

/** Settings of {@link lockRows}. */
export interface LockRowsOptions<TFields extends RowFields> extends WhichRows {
  /** What to answer of each row. @default all columns */
  returning?: TFields | undefined;
  /**
   * How strongly to lock. With `share` and `key share` several transactions may get the same row.
   * @default 'update'
   */
  strength?: LockStrength | undefined;
}

/**
 * Locks the first rows that nobody has locked, and answers them: `SELECT … FOR UPDATE SKIP LOCKED`, one statement. Needs no primary
 * key.
 *
 * Awaited inside a transaction, the rows are that transaction's until it ends:
 *
 * ```ts
 * await db.transaction(async (tx) => {
 *   for (const mail of await lockRows(tx, outbox, { orderBy: outbox.id, limit: 10 })) {
 *     await send(mail);
 *     await tx.delete(outbox).where(eq(outbox.id, mail.id));
 *   }
 * });
 * ```
 *
 * Or as a part of a statement of your own:
 *
 * ```ts
 * const next = db.$with('next').as(lockRows(db, urls, { where: isNull(urls.fetchedAt), limit: 100 }));
 * await db.with(next).update(urls).set({ fetchedBy: me }).from(next).where(eq(urls.id, next.id));
 * ```
 *
 * Awaited outside a transaction it is of no use: the locks end with the statement.
 *
 * **Under concurrency.** With `update` and `no key update` each row is answered to one transaction at a time; none waits for
 * another, and none locks more than `limit`, in whatever statement it stands: a CTE with row locks is never inlined and computed once,
 * so even `id in (…)`, which with a plain `select … limit 1 for update skip locked` can take a whole table, is safe. The rows are
 * as they are now, and not as they were when the statement began. They come back in the order of `orderBy`; where another
 * transaction has just changed a column of it, in the order before that.
 *
 * Never answered from drizzle-orm's query cache: a cached row is not locked.
 *
 * @throws RangeError | TypeError when an argument or option is wrong
 */
export function lockRows<TTable extends PgTable, TFields extends RowFields = TTable['_']['columns']>(
  db: QueryBuilders,
  table: TTable,
  options: LockRowsOptions<TFields> = {},
  // NoInfer: where a row type is expected, TypeScript would guess the fields from that and miss their default.
): RowsQuery<NoInfer<TFields>> {
  checkCall('lockRows', db, table, options);
  const { returning, strength = 'update', ...which } = options;
  const lock = lockOf('lockRows', strength);
  // The default belongs to the type parameter's own default, which TypeScript cannot connect with the value.
  const fields = namedFields(returning ?? (getTableColumns(table) as TFields));
  const list = Object.values(fields).map((field) =>
    is(field, SQL.Aliased) ? sql`${field.sql} as ${sql.identifier(field.fieldAlias)}` : sql`${field}`,
  );
  // Not `db.$with`: that of drizzle-orm 0.45's `withReplicas` loses the fields.
  const locked = new QueryBuilder()
    .$with('locked', fields)
    .as(sql`select ${sql.join(list, sql`, `)} from ${table}${lockingClauses('lockRows', which, lock)}`);
  // The fields of the CTE are the given ones under its name, which Drizzle's types express by other types.
  return db.with(locked).select().from(locked).$withCache(false) as unknown as RowsQuery<TFields>;
}
