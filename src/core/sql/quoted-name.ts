import { getTableConfig, type PgTable } from 'drizzle-orm/pg-core';

/** A table's name for functions that take a name as text: quoted, with its schema if it has one. */
export function quotedName(table: PgTable): string {
  const { schema, name } = getTableConfig(table);
  return [schema, name]
    .filter((part) => part !== undefined)
    .map((part) => `"${part.replaceAll('"', '""')}"`)
    .join('.');
}
