import { createQueue } from 'drizzle-queue';
import { expect, test } from 'vitest';
import { useTestDatabase } from '../support/test-database.ts';
import { kitMajor, schemaEntry, useKitProjects } from './kit-project.ts';

const library = JSON.stringify(schemaEntry);
const database = useTestDatabase({ template: false });
const createProject = useKitProjects();

test.each([
  {
    what: 'exported only one table',
    schema: `export { queueJobs } from ${library};`,
    made: ['queue_jobs'],
    message:
      '"queue_results", "queue_workers", "queue_pauses" do not exist, though other tables of the queue do',
    fix: 'not all tables are exported',
  },
  {
    what: 'nested the tables in an object',
    schema: `import { createQueueTables } from ${library}; export const tables = createQueueTables();`,
    made: [],
    message: "None of the queue's tables exists in this database",
    fix: 'the tables are not exported, or inside an object, which drizzle-kit passes over',
  },
  {
    what: 'forgot the tables',
    schema: `import { integer, pgTable } from 'drizzle-orm/pg-core'; export const orders = pgTable('orders', { id: integer('id') });`,
    made: ['orders'],
    message: "None of the queue's tables exists in this database, though Drizzle has migrated it",
    fix: 'the tables are not exported, or inside an object',
  },
])(
  `an app that $what is told, after drizzle-kit ${kitMajor}`,
  async ({ schema, made, message, fix }) => {
    const { client, db } = database;
    await client`drop schema public cascade`;
    await client`drop schema if exists drizzle cascade`;
    await client`create schema public`;
    const project = await createProject({ schema, databaseUrl: database.url });
    await project.generate();
    // Without a migration there may be nothing to read.
    await project.migrate().catch(() => undefined);
    const rows = await client<{ name: string }[]>`
    select tablename::text as name from pg_tables where schemaname = 'public' order by 1`;
    expect(rows.map(({ name }) => name)).toEqual(made);

    const [finding] = await createQueue().check(db);
    expect(finding).toMatchObject({ code: 'tables-missing', severity: 'error' });
    expect(finding?.message).toContain(message);
    expect(finding?.fix).toContain(fix);
    expect(finding?.fix).toContain("must have `export * from 'drizzle-queue/schema'` at its top level");
  },
  200_000,
);
