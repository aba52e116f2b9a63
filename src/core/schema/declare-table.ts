import { type PgSchema, pgTable } from 'drizzle-orm/pg-core';

/**
 * Drizzle's function that declares a table: `pgTable`, or that of a `pgSchema`. At run time both take the
 * same arguments; the static types differ only in the schema's name, which the tables' declared types carry.
 */
export type DeclareTable = typeof pgTable;

/** The function that declares tables in `schema`, or in the default one. */
export function declareTableIn(schema: Pick<PgSchema, 'table'> | undefined): DeclareTable {
  // The two types differ only in the schema's name, but TypeScript sees no overlap.
  return schema === undefined ? pgTable : (schema.table as unknown as DeclareTable);
}
