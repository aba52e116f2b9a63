import { getTableColumns, is, SQL, sql } from 'drizzle-orm';
import type { PgTable } from 'drizzle-orm/pg-core';
import { checkCall } from './check-call.ts';
import { cte } from './cte.ts';
import { type LockStrength, lockingClauses, lockOf, type WhichRows } from './lock-options.ts';
import { type QueryBuilders, uncached } from './query-builders.ts';
import { namedFields, type RowFields } from './row-fields.ts';
import type { RowsQuery } from './rows-query.ts';

/** The options of {@link lockRows}. */
export interface LockRowsOptions<TFields extends RowFields> extends WhichRows {
  /** What to return of each row. @default all columns */
  returning?: TFields | undefined;
  /** With `share` and `key share` several transactions may get the same row. @default 'update' */
  strength?: LockStrength | undefined;
}

/**
 * Locks the first rows that are not locked yet, and returns them: `SELECT … FOR UPDATE SKIP LOCKED`, one
 * statement. Needs no primary key.
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
 * Awaited outside a transaction it is useless: the locks end with the statement.
 *
 * **Under concurrency.** With `update` and `no key update` each row goes to one transaction at a time. None
 * waits for another, and none locks more than `limit`, whatever the surrounding statement: Postgres never
 * inlines a CTE with row locks and computes it once, so even `id in (…)` is safe, where a plain `select …
 * limit 1 for update skip locked` can take a whole table. The rows are as they are now, not as they were when
 * the statement began. They come back in the order of `orderBy`, but where another transaction has just
 * changed one of its columns, in the order before the change.
 *
 * drizzle-orm's query cache never returns it: a cached row is not locked.
 *
 * @throws RangeError | TypeError when an argument or option is wrong
 */
export function lockRows<TTable extends PgTable, TFields extends RowFields = TTable['_']['columns']>(
  db: QueryBuilders,
  table: TTable,
  options: LockRowsOptions<TFields> = {},
  // NoInfer: otherwise TypeScript infers the fields from an expected row type and misses their default.
): RowsQuery<NoInfer<TFields>> {
  checkCall('lockRows', db, table, options);
  const { returning, strength = 'update', ...which } = options;
  const lock = lockOf('lockRows', strength);
  // TypeScript cannot connect this value with the type parameter's default.
  const fields = namedFields(returning ?? (getTableColumns(table) as TFields));
  const list = Object.values(fields).map((field) =>
    is(field, SQL.Aliased) ? sql`${field.sql} as ${sql.identifier(field.fieldAlias)}` : sql`${field}`,
  );
  // Not `db.$with`: in `withReplicas` of drizzle-orm 0.45 it loses the fields.
  const locked = cte(
    'locked',
    fields,
    sql`select ${sql.join(list, sql`, `)} from ${table}${lockingClauses('lockRows', which, lock)}`,
  );
  // The CTE has the given fields under its own name; Drizzle's types express them differently.
  return uncached(db.with(locked).select().from(locked)) as unknown as RowsQuery<TFields>;
}
