import { drizzle as drizzlePg } from 'drizzle-orm/node-postgres';
import pg from 'pg';
import { afterAll, beforeAll, describe } from 'vitest';
import { useTestDatabase } from '../support/test-database.ts';
import { behaviours } from './behaviours.ts';

/** Declares the tests that hold what one worker on a client does for each of so many. */
export function manyWorkers(workers: number): void {
  describe(`${workers} workers on a client`, () => {
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
}
