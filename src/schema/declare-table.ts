import { type PgSchema, pgTable } from 'drizzle-orm/pg-core';

/**
 * Drizzle's function that declares a table: `pgTable`, or the one of a `pgSchema`. At run time both take the same arguments;
 * the static types differ only in the schema's name, which the tables' declared types carry themselves.
 */
export type DeclareTable = typeof pgTable;

/** The function that declares tables in `schema`, or in the default Postgres schema. */
export function declareTableIn(schema: Pick<PgSchema, 'table'> | undefined): DeclareTable {
  // Only the schema's name differs in the two types, so TypeScript finds no overlap.
  return schema === undefined ? pgTable : (schema.table as unknown as DeclareTable);
}
