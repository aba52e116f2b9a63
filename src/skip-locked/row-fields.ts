import { is, SQL, sql } from 'drizzle-orm';
import type { PgColumn } from 'drizzle-orm/pg-core';
import type { SelectResultFields } from 'drizzle-orm/query-builders/select.types';

/** What to return of each row: columns of the table, and SQL, under names of your own. */
export type RowFields = Record<string, PgColumn | SQL | SQL.Aliased>;

/** A row as a query with these fields returns it. */
export type Row<TFields extends RowFields> = SelectResultFields<TFields>;

/**
 * Names each unnamed SQL field by its key: a surrounding statement refers to fields by name, and drizzle-orm
 * refuses one without. The same for a column that is there under another key already.
 */
export function namedFields<TFields extends RowFields>(fields: TFields): TFields {
  const columns = new Set<string>();
  const entries = Object.entries(fields).map(([key, field]) => {
    if (is(field, SQL)) return [key, field.as(key)];
    if (is(field, SQL.Aliased)) return [key, field];
    if (columns.has(field.name)) return [key, sql`${field}`.mapWith(field).as(key)];
    columns.add(field.name);
    return [key, field];
  });
  // An expression keeps its row type when it is given a name.
  return Object.fromEntries(entries) as TFields;
}
