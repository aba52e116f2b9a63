import { readdir, readFile } from 'node:fs/promises';
import { PGlite } from '@electric-sql/pglite';
import { drizzle as drizzleNodePostgres } from 'drizzle-orm/node-postgres';
import { drizzle as drizzlePglite } from 'drizzle-orm/pglite';
import type { Database } from 'drizzle-queue';
import pg from 'pg';
import type { UsedTestDatabase } from '../../support/test-database.ts';

export interface OpenDriver {
  readonly db: Database;
  close(): Promise<void>;
}

/** The drivers of Drizzle that differ in how they send and read values, each on a database with the library's tables. */
export const drivers = {
  'postgres.js': async ({ db }: UsedTestDatabase): Promise<OpenDriver> => ({ db, close: async () => {} }),
  'node-postgres': async ({ url }: UsedTestDatabase): Promise<OpenDriver> => {
    const pool = new pg.Pool({ connectionString: url, max: 3 });
    return { db: drizzleNodePostgres({ client: pool }), close: () => pool.end() };
  },
  PGlite: async (): Promise<OpenDriver> => {
    const client = new PGlite();
    await migratePglite(client);
    return { db: drizzlePglite({ client }), close: () => client.close() };
  },
};

/** Creates the library's tables. */
export async function migratePglite(client: PGlite): Promise<void> {
  const folder = new URL('../../../drizzle/', import.meta.url);
  const migrations = (await readdir(folder)).filter((name) => name.endsWith('.sql')).sort();
  for (const name of migrations) await client.exec(await readFile(new URL(name, folder), 'utf8'));
}
