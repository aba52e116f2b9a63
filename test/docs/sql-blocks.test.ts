import { beforeAll, describe, expect, test } from 'vitest';
import { addControlTables, addMetricsTable, addWorkflowTables } from '../support/control-tables.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { readPages } from './pages.ts';

const database = useTestDatabase();
beforeAll(async () => {
  await addControlTables(database);
  await addMetricsTable(database);
  await addWorkflowTables(database);
});

const blocks = readPages().flatMap(({ path, blocks }) =>
  blocks
    .filter(({ language, info }) => language === 'sql' && info === '')
    .map(({ line, code }) => ({ place: `${path}:${line}`, code })),
);

/** The tables of the shop that the pages speak of, and the roles of the page about the schema. */
const shop = `
  create table orders (id int primary key generated always as identity, email text not null, total_cents int not null,
    placed_at timestamptz not null default now(), receipt_id text, receipt_job_id bigint);
  create role app_web;
  create role app_worker;
  create role app_reader;
  create role app_admin;`;

describe('the SQL in the documentation', () => {
  test.for(blocks)('runs: $place', async ({ code }) => {
    const rollback = new Error('rollback');
    const run = database.client.begin(async (sql) => {
      await sql.unsafe(shop);
      await sql.unsafe(code);
      throw rollback;
    });
    await expect(run).rejects.toBe(rollback);
  });
});
