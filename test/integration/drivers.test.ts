import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { PGlite } from '@electric-sql/pglite';
import { drizzle as drizzlePg } from 'drizzle-orm/node-postgres';
import { drizzle as drizzlePglite } from 'drizzle-orm/pglite';
import type { Database } from 'drizzle-queue';
import pg from 'pg';
import { afterAll, beforeAll, describe } from 'vitest';
import { useTestDatabase } from '../support/test-database.ts';
import { behaviours } from './behaviours.ts';

describe('postgres.js', () => {
  const database = useTestDatabase();
  behaviours(() => database.db);
});

describe('node-postgres', () => {
  const database = useTestDatabase();
  let pool: pg.Pool;
  let db: Database;
  beforeAll(() => {
    pool = new pg.Pool({ connectionString: database.url, max: 5 });
    db = drizzlePg({ client: pool });
  });
  // Before the database is dropped, which would end its connections with an error.
  afterAll(() => pool.end());
  behaviours(() => db);
});

describe('PGlite', () => {
  let client: PGlite;
  let db: Database;
  beforeAll(async () => {
    client = new PGlite();
    const migrations = fileURLToPath(new URL('../../drizzle/', import.meta.url));
    for (const file of readdirSync(migrations).sort()) {
      if (file.endsWith('.sql')) await client.exec(readFileSync(`${migrations}${file}`, 'utf8'));
    }
    db = drizzlePglite({ client });
  });
  afterAll(() => client.close());
  behaviours(() => db);
});
