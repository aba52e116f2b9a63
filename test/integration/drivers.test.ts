import type { PGlite } from '@electric-sql/pglite';
import { drizzle as drizzlePg } from 'drizzle-orm/node-postgres';
import { drizzle as drizzleProxy, type RemoteCallback } from 'drizzle-orm/pg-proxy';
import { drizzle as drizzlePglite } from 'drizzle-orm/pglite';
import pg from 'pg';
import { afterAll, beforeAll, describe, vi } from 'vitest';
import { openPglite } from '../support/pglite.ts';
import { useTestDatabase } from '../support/test-database.ts';

// Afresh: a warning is given once, and another test file of this process may have met it.
vi.resetModules();
const { behaviours } = await import('./behaviours.ts');

describe('postgres.js', () => {
  const database = useTestDatabase();
  behaviours(() => database.db, { url: () => database.url });
});

describe('node-postgres', () => {
  const database = useTestDatabase();
  let pool: pg.Pool;
  beforeAll(() => {
    pool = new pg.Pool({ connectionString: database.url, max: 5 });
    // A connection that is lost while it is idle is reported here, and would end the process if nobody listened.
    pool.on('error', () => undefined);
  });
  // Before the database is dropped, which would end its connections with an error.
  afterAll(() => pool.end());
  behaviours(() => drizzlePg({ client: pool }), { url: () => database.url });
});

describe('PGlite', () => {
  let client: PGlite;
  beforeAll(async () => {
    client = await openPglite();
  });
  afterAll(() => client.close());
  behaviours(() => drizzlePglite({ client }), { lacks: ['connections', 'session'] });
});

describe('pg-proxy, which has neither transactions nor notifications', () => {
  const database = useTestDatabase();
  let pool: pg.Pool;
  beforeAll(() => {
    pool = new pg.Pool({ connectionString: database.url, max: 5 });
    pool.on('error', () => undefined);
  });
  afterAll(() => pool.end());
  // What an app's own endpoint would do, on the other side of HTTP.
  const answer: RemoteCallback = async (text, values, method) => {
    const rowMode = method === 'all' ? { rowMode: 'array' } : {};
    const { rows } = await pool.query({ text, values, ...rowMode });
    return { rows };
  };
  behaviours(() => drizzleProxy(answer), { lacks: ['transactions', 'listening'] });
});
