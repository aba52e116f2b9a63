import { is, SQL } from 'drizzle-orm';
import type { PgColumn } from 'drizzle-orm/pg-core';
import type { SelectResultFields } from 'drizzle-orm/query-builders/select.types';

/** What to answer of each row: columns of the table, and SQL, under names of your own. */
export type RowFields = Record<string, PgColumn | SQL | SQL.Aliased>;

/** A row as a query with these fields answers it. */
export type Row<TFields extends RowFields> = SelectResultFields<TFields>;

/**
 * The same fields, where SQL without a name of its own is named by its key: a statement around the query refers to fields by
 * name, and drizzle-orm refuses to refer to one that has none.
 */
export function namedFields<TFields extends RowFields>(fields: TFields): TFields {
  const entries = Object.entries(fields).map(([key, field]) => [key, is(field, SQL) ? field.as(key) : field]);
  // An expression that is given a name keeps its type in a row.
  return Object.fromEntries(entries) as TFields;
}
