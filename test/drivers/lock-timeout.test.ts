import { sql } from 'drizzle-orm';
import { drizzle as drizzlePg } from 'drizzle-orm/node-postgres';
import { drizzle as drizzlePostgresJs } from 'drizzle-orm/postgres-js';
import type { Database } from 'drizzle-queue';
import pg from 'pg';
import postgres from 'postgres';
import { describe, expect, onTestFinished, test } from 'vitest';
import { finishJobs } from '../../src/core/queries/settle/finish-jobs.ts';
import { queryRows } from '../../src/core/sql/executor.ts';
import { addJob, tables } from '../queries/support/jobs.ts';
import { useTestDatabase } from '../support/test-database.ts';

const database = useTestDatabase();

/** Databases on one connection each, so that the next statement meets what the one before has set. */
const drivers = {
  'postgres.js': () => {
    const client = postgres(database.url, { max: 1, onnotice: () => {} });
    onTestFinished(() => client.end());
    return drizzlePostgresJs({ client });
  },
  'node-postgres': () => {
    const client = new pg.Pool({ connectionString: database.url, max: 1 });
    client.on('error', () => {});
    onTestFinished(() => client.end());
    return drizzlePg({ client });
  },
};

describe.each(Object.entries(drivers))(
  'a batch that waits briefly for locked rows, on %s',
  (_, connect: () => Database) => {
    const finish = {
      type: 'finish',
      state: 'completed',
      output: null,
      error: null,
      keepResult: false,
    } as const;

    test.each(['free', 'locked'])('leaves no lock_timeout to the app when its row is %s', async (row) => {
      const db = connect();
      const held = { queue: 'q', workerId: 1 };
      const id = await addJob(database.client, { workerId: 1, fence: 1 });
      await queryRows(db, tables, sql`set lock_timeout = '7s'`);
      const write = () =>
        finishJobs(db, tables, held, [{ id, fence: 1, transition: finish }], { locks: 'briefly' });
      if (row === 'free') expect(await write()).toEqual(new Set([id]));
      else {
        await database.client.begin(async (other) => {
          await other`select from queue_jobs where id = ${id} for update`;
          await expect(write()).rejects.toMatchObject({ cause: { code: '55P03' } });
        });
      }
      const [answer] = await queryRows(db, tables, sql`select current_setting('lock_timeout') as timeout`);
      // After an error node-postgres has closed the connection, and this is the server's own.
      expect(['7s', '0']).toContain(answer?.timeout);
    });
  },
);
