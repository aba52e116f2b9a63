import { drizzle as drizzleNodePostgres } from 'drizzle-orm/node-postgres';
import { drizzle as drizzlePglite } from 'drizzle-orm/pglite';
import type { Database } from 'drizzle-queue';
import pg from 'pg';
import { openPglite } from '../../support/pglite.ts';
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
    // The database may be dropped before the server has ended the last connection, which is reported here.
    pool.on('error', () => {});
    return { db: drizzleNodePostgres({ client: pool }), close: () => pool.end() };
  },
  PGlite: async (): Promise<OpenDriver> => {
    const client = await openPglite();
    return { db: drizzlePglite({ client }), close: () => client.close() };
  },
};
