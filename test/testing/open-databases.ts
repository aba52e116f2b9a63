import type { PGlite } from '@electric-sql/pglite';
import { drizzle as drizzlePglite } from 'drizzle-orm/pglite';
import { afterAll, beforeAll } from 'vitest';
import { addControlTables, controlStatements } from '../support/control-tables.ts';
import { openPglite } from '../support/pglite.ts';
import { type UsedTestDatabase, useTestDatabase } from '../support/test-database.ts';

/** What the kit is tested on: both are typed as the first, which they behave like. */
export const DATABASES = ['PostgreSQL', 'PGlite'] as const;

/** To begin PGlite takes a busy machine long. */
const PATIENCE_MS = 180_000;

/** A database with all tables of the library. */
export function useDatabaseOn(name: (typeof DATABASES)[number]): { readonly db: UsedTestDatabase['db'] } {
  const server = useTestDatabase();
  let client: PGlite | undefined;
  let db: UsedTestDatabase['db'] | undefined;
  beforeAll(async () => {
    if (name === 'PostgreSQL') {
      await addControlTables(server);
      db = server.db;
      return;
    }
    client = await openPglite();
    for (const statement of await controlStatements()) await client.exec(statement);
    db = drizzlePglite({ client }) as unknown as UsedTestDatabase['db'];
  }, PATIENCE_MS);
  afterAll(async () => {
    await client?.close();
  });
  return {
    get db() {
      if (db === undefined) throw new Error('the database exists only while the tests run');
      return db;
    },
  };
}
