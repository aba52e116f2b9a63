import { drizzle as drizzlePg } from 'drizzle-orm/node-postgres';
import pg from 'pg';
import { afterAll, beforeAll, describe } from 'vitest';
import { useTestDatabase } from '../support/test-database.ts';
import { behaviours } from './behaviours.ts';

/* What one worker on a client does, each of many does. */

describe.each([2, 20])('%i workers on a client', (workers) => {
  describe('postgres.js', () => {
    const database = useTestDatabase();
    behaviours(() => database.db, { url: () => database.url, workers });
  });

  describe('node-postgres', () => {
    const database = useTestDatabase();
    let pool: pg.Pool;
    beforeAll(() => {
      pool = new pg.Pool({ connectionString: database.url, max: 5 });
      pool.on('error', () => undefined);
    });
    afterAll(() => pool.end());
    behaviours(() => drizzlePg({ client: pool }), { url: () => database.url, workers });
  });
});
