import { sql } from 'drizzle-orm';
import postgres from 'postgres';
import { describe, expect, inject, test } from 'vitest';
import { createDatabase } from './databases.ts';
import { createTestDatabase, useTestDatabase } from './test-database.ts';
import { until } from './until.ts';

describe('createTestDatabase', () => {
  test('creates databases of unique names, also several at once', async () => {
    const [first, second] = await Promise.all([createTestDatabase(), createTestDatabase()]);
    expect(first.name).not.toBe(second.name);
    await Promise.all([first.drop(), second.drop()]);
  });

  test('waits for other users of the database to be copied, longer than PostgreSQL itself does', async () => {
    const server = inject('testServer');
    const original = await createTestDatabase({ template: false });
    const user = postgres(original.url, { max: 1 });
    await user`CREATE TABLE copied ()`;
    const copying = createDatabase(server.url, { name: `${original.name}_copy`, template: original.name });

    const findAttempt = async (): Promise<string | undefined> => {
      const [row] = await user<{ start: string }[]>`
        SELECT query_start::text AS start FROM pg_stat_activity
        WHERE query LIKE 'CREATE DATABASE%' AND query LIKE ${`%${original.name}_copy%`} AND state = 'active'`;
      return row?.start;
    };
    const firstAttempt = await until(findAttempt);
    await until(async () => {
      const attempt = await findAttempt();
      return attempt !== undefined && attempt !== firstAttempt;
    });
    await user.end();

    const copy = await copying;
    // Only itself, although the other's name starts with its name.
    await original.drop();
    const copyUser = postgres(copy.url, { max: 1 });
    expect(await copyUser`SELECT * FROM copied`).toEqual([]);
    await copyUser.end();
    await copy.drop();
  });

  test('drop() disconnects users and can be called again', async () => {
    const database = await createTestDatabase();
    const user = postgres(database.url, { max: 1 });
    await user`SELECT 1`;
    await database.drop();
    await database.drop();
    await expect(user`SELECT 1`).rejects.toThrow(/does not exist|terminat|CONNECTION/);
    await user.end();
  });
});

describe('useTestDatabase', () => {
  const database = useTestDatabase({ max: 2 });

  test('gives a database with the tables of the library', async () => {
    const [row] =
      await database.client`SELECT current_database() AS name, to_regclass('queue_jobs')::text AS jobs`;
    expect(row).toEqual({ name: database.name, jobs: 'queue_jobs' });
    const [viaDrizzle] = await database.db.execute(sql`SELECT current_database() AS name`);
    expect(viaDrizzle).toEqual({ name: database.name });
  });

  test('gives further connections, each independent of the others', async () => {
    const connections = await database.connect(3);
    const pids = await Promise.all(
      connections.map(async ({ client }) => {
        const [row] = await client<{ pid: number }[]>`SELECT pg_backend_pid() AS pid`;
        return row?.pid;
      }),
    );
    expect(new Set(pids).size).toBe(3);
  });
});

describe('useTestDatabase without the template', () => {
  const database = useTestDatabase({ template: false });

  test('gives an empty database', async () => {
    const [row] = await database.client`SELECT to_regclass('queue_jobs')::text AS jobs`;
    expect(row).toEqual({ jobs: null });
  });
});
