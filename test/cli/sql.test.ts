import { createQueue, defineJob } from 'drizzle-queue';
import { describe, expect, test } from 'vitest';
import { grantsSql } from '../../src/entries/cli/sql/grants.ts';
import { partitionsSql } from '../../src/entries/cli/sql/partitions.ts';
import { placeOf } from '../../src/entries/cli/sql/table-names.ts';
import { tuningSql } from '../../src/entries/cli/sql/tuning.ts';
import { readPages } from '../docs/pages.ts';
import { addControlTables, addMetricsTable, addWorkflowTables } from '../support/control-tables.ts';
import { partitionMigration } from '../support/partitions.ts';
import { useTestDatabase } from '../support/test-database.ts';

const database = useTestDatabase();
const usual = placeOf({});
const ALL = { control: true, metrics: true, workflows: true };
const roles = { web: 'app_web', worker: 'app_worker', reader: 'app_reader', admin: 'app_admin' };

const blocks = readPages().flatMap(({ blocks }) => blocks.filter(({ language }) => language === 'sql'));

/** The statements of some SQL, without comments and breaks of lines. */
function statements(sql: string): string[] {
  return sql
    .replaceAll(/--.*$/gm, '')
    .split(';')
    .map((each) => each.replaceAll(/\s+/g, ' ').trim())
    .filter((each) => each !== '');
}

function blockWith(text: string): string[] {
  const found = blocks.filter(({ code }) => code.includes(text));
  expect(found).toHaveLength(1);
  return statements(found[0]?.code ?? '');
}

describe('is what the guides have:', () => {
  test('tuning', () => {
    expect(statements(tuningSql(usual))).toEqual(blockWith('autovacuum_vacuum_cost_delay = 0,'));
  });

  test('partitions', () => {
    expect(statements(partitionsSql(usual, { list: ['mail'] }))).toEqual(
      statements(partitionMigration('list')),
    );
    expect(statements(partitionsSql(usual, { hash: 4 }))).toEqual(statements(partitionMigration('hash')));
  });

  test('grants', () => {
    const granted = statements(grantsSql(usual, roles, ALL));
    const written = blocks
      .filter(({ code }) => /^grant .* to app_\w+;/m.test(code) && !/policy/.test(code))
      .flatMap(({ code }) => statements(code))
      .filter((each) => /^grant .* to app_(web|worker|reader|admin)$/.test(each));
    expect(written.length).toBeGreaterThan(15);
    expect(written.filter((each) => !granted.includes(each))).toEqual([]);
    for (const tables of [/queue_metrics/, /queue_steps/, /queue_tallies/])
      expect(written.some((each) => tables.test(each))).toBe(true);
  });
});

test('runs: partitions for hostile names of queues, tuning of one, and grants to new roles', async () => {
  const { client } = database;
  await addControlTables(database);
  await addMetricsTable(database);
  await addWorkflowTables(database);
  const queue = createQueue();
  const job = defineJob('a');
  for (const name of ['Mail', "it's"]) await queue.enqueue(database.db, job, undefined, { queue: name });
  await client.begin(async (sql) => {
    await sql.unsafe(tuningSql(usual));
    await sql.unsafe(partitionsSql(usual, { list: ['Mail', 'mail', "it's", 'rest', 'x'.repeat(200)] }));
    const names = ['web', 'worker', 'reader', 'admin'].map((name) => `cli_${process.pid}_${name}`);
    for (const name of names) await sql.unsafe(`create role ${name}`);
    const [web = '', worker = '', reader = '', admin = ''] = names;
    await sql.unsafe(grantsSql(usual, { web, worker, reader, admin }, ALL));
    const jobs = await sql<{ queue: string; partition: string }[]>`
      select queue, tableoid::regclass::text as partition from queue_jobs`;
    expect(Object.fromEntries(jobs.map(({ queue, partition }) => [queue, partition]))).toEqual({
      "it's": 'queue_jobs_it_s',
      Mail: 'queue_jobs_mail',
    });
    for (const name of names) {
      await sql.unsafe(`drop owned by ${name}`);
      await sql.unsafe(`drop role ${name}`);
    }
  });
});

test('of tables in a schema', async () => {
  const { client } = database;
  await client`create schema shop`;
  for (const name of ['jobs', 'results', 'workers', 'pauses'])
    await client.unsafe(`alter table queue_${name} set schema shop`);
  const place = placeOf({ schema: 'shop' });
  await expect(
    client.begin(async (sql) => {
      await sql.unsafe(
        grantsSql(place, { web: 'public', worker: 'public', reader: 'public', admin: 'public' }, {}),
      );
      throw new Error('all of it ran');
    }),
  ).rejects.toThrow('all of it ran');
  expect(() => placeOf({ prefix: 'a; drop' })).toThrow('plain lower-case name');
});
