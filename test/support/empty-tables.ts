import type postgres from 'postgres';

/**
 * Deletes the rows of tables. Before each test, a TRUNCATE would create all files of the tables and of their indexes
 * anew: some sixty for those of jobs and results.
 */
export async function emptyTables(client: postgres.Sql, ...tables: readonly string[]): Promise<void> {
  await client.unsafe(tables.map((table) => `delete from ${table}`).join('; '));
}
