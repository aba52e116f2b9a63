import { readFile } from 'node:fs/promises';
import { sql } from 'drizzle-orm';
import { getTableConfig, type PgTable, pgSchema } from 'drizzle-orm/pg-core';
import { drizzle } from 'drizzle-orm/postgres-js';
import {
  createQueue,
  type Finding,
  type FindingCode,
  limitsIn,
  schedulesIn,
  workflowsIn,
} from 'drizzle-queue';
import { createQueueTables } from 'drizzle-queue/schema';
import * as control from 'drizzle-queue/schema/control';
import * as workflows from 'drizzle-queue/schema/workflows';
import postgres from 'postgres';
import { beforeAll, describe, expect, test } from 'vitest';
import { inspectServer } from '../../src/core/queries/operate/inspect-server.ts';
import { checkServer } from '../../src/core/queue/check/check-server.ts';
import { startStandby } from '../faults/standby.ts';
import { addJob, tables } from '../queries/support/jobs.ts';
import { AS_ON_CITUS, ONE_SHARD_AFTER_THE_OTHER } from '../support/citus.ts';
import { addControlTables, controlStatements, workflowsStatements } from '../support/control-tables.ts';
import { startPostgres } from '../support/embedded-postgres.ts';
import { emptyTables } from '../support/empty-tables.ts';
import { hasPostgres } from '../support/postgres-binaries.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';

const queue = createQueue();
const database = useTestDatabase();
const empty = useTestDatabase({ template: false });
const locked = useTestDatabase();

const TUNED = `
  alter table queue_jobs set (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.05);
  alter table queue_results set (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_insert_scale_factor = 0.05);`;

/** What is found in a database that is as it should be but for this, which is undone afterwards. */
async function foundAfter(
  change: string,
  { in: at = database, with: of = queue }: { in?: typeof database; with?: typeof queue } = {},
): Promise<Finding[]> {
  const [connection] = await at.connect();
  if (connection === undefined) throw new Error('there is no connection');
  let findings: Finding[] | undefined;
  await connection.db
    .transaction(async (tx) => {
      for (const statement of [ONE_SHARD_AFTER_THE_OTHER, ...change.split(';')]) {
        if (statement.trim() !== '') await tx.execute(sql.raw(statement));
      }
      findings = await of.check(tx);
      tx.rollback();
    })
    .catch((error: unknown) => {
      if (findings === undefined) throw error;
    });
  return findings ?? [];
}

const codes = (findings: readonly Finding[]): FindingCode[] => findings.map(({ code }) => code);

describe('a database that is as it should be', () => {
  test('has nothing against it but advice', async () => {
    const findings = await queue.check(database.db);
    expect(findings.map(({ code, severity }) => [code, severity])).toEqual([
      ['not-tuned', 'hint'],
      ['not-tuned', 'hint'],
    ]);
  });

  test('has nothing at all once the advice is followed, in the words of the findings or of the guide', async () => {
    const fixes = (await queue.check(database.db)).map(({ fix }) => fix.replace(/^.*?: (?=alter)/, ''));
    expect(await foundAfter(fixes.join(';'))).toEqual([]);
    expect(await foundAfter(TUNED)).toEqual([]);
    const guide = /```sql\n(alter table queue_jobs set[^`]*)```/.exec(
      await readFile('docs/schema.md', 'utf8'),
    )?.[1];
    expect(await foundAfter(guide?.replaceAll('--> statement-breakpoint', '') ?? '')).toEqual([]);
  });

  test('is only read by the check', async () => {
    const [reader = database] = await database.connect();
    await reader.client`set default_transaction_read_only = on`;
    const findings = await queue.check(reader.db);
    expect(codes(findings)).toEqual(['read-only', 'not-tuned', 'not-tuned']);
    expect(findings[0]?.message).toContain('default_transaction_read_only is on');
  });
});

describe('tables', () => {
  test('none: the export and the commands', async () => {
    const [finding, ...others] = await queue.check(empty.db);
    expect(others).toEqual([]);
    expect(finding).toMatchObject({ code: 'tables-missing', severity: 'error' });
    expect(finding?.message).toBe("None of the queue's tables exists in this database");
    expect(finding?.fix).toContain('`npx drizzle-kit generate` and `npx drizzle-kit migrate`');
    expect(finding?.fix).toContain("`export * from 'drizzle-queue/schema'` at its top level");
  });

  test('none, though migrations have run: forgotten in the schema file, or nested in an object', async () => {
    const [finding] = await foundAfter(
      'create schema drizzle; create table drizzle.__drizzle_migrations (id int)',
      { in: empty },
    );
    expect(finding?.message).toContain('although Drizzle has run migrations on it');
    expect(finding?.fix).toContain('inside an object, which drizzle-kit ignores');
  });

  test.each(Object.values(tables).map((table: PgTable) => getTableConfig(table).name))(
    'all but %s: exported only partly',
    async (name) => {
      const findings = await foundAfter(`${TUNED}; drop table ${name}`);
      expect(codes(findings)).toEqual(['tables-missing']);
      expect(findings[0]?.message).toBe(`"${name}" does not exist, but other tables of the queue do`);
      expect(findings[0]?.fix).toContain('not all tables are exported');
    },
  );

  test('under another name: what the app exports', async () => {
    const mail = createQueue({ tables: createQueueTables({ prefix: 'mail_' }) });
    const [finding, ...others] = await mail.check(database.db);
    expect(others).toEqual([]);
    expect(finding?.fix).toContain('= createQueueTables({ … })` at its top level');
    expect(finding?.fix).toContain('export const { queueJobs, queueResults, queueWorkers');
  });

  test.each([
    [{ schema: pgSchema('work') }, '{ schema: queueSchema }'],
    [{ schema: pgSchema('work'), prefix: 'mail_' }, '{ schema: queueSchema, … }'],
  ])('in a schema of their own: the export of the schema, too', async (options, call) => {
    const work = createQueue({ tables: createQueueTables(options) });
    const [finding, ...others] = await work.check(empty.db);
    expect(others).toEqual([]);
    expect(finding?.code).toBe('tables-missing');
    expect(finding?.fix).toContain(
      "`export const queueSchema = pgSchema('work')` and `export const { queueJobs",
    );
    expect(finding?.fix).toContain(`= createQueueTables(${call})\` at its top level`);
  });

  const move = Object.values(tables)
    .map((table: PgTable) => `alter table ${getTableConfig(table).name} set schema work;`)
    .join('\n');

  test('in another schema, which the search path does not have', async () => {
    const findings = await foundAfter(`create schema work; ${move}`);
    expect(codes(findings)).toEqual(['tables-elsewhere']);
    expect(findings[0]?.message).toContain('tables of that name in the schema work');
    expect(findings[0]?.fix).toContain("createQueueTables({ schema: pgSchema('work') })");
  });

  test('in a schema that is named, or in the search path', async () => {
    const work = createQueue({ tables: createQueueTables({ schema: pgSchema('work') }) });
    expect(await foundAfter(`${TUNED} create schema work; ${move}`, { with: work })).toEqual([]);
    expect(await foundAfter(`${TUNED} create schema work; ${move} set search_path = work`)).toEqual([]);
  });

  test('that this role may not use', async () => {
    const work = createQueue({ tables: createQueueTables({ schema: pgSchema('work') }) });
    const asNobody = 'create role check_nobody; set local role check_nobody';
    const findings = await foundAfter(`create schema work; ${move} ${asNobody}`, { with: work });
    expect(codes(findings)).toEqual(['permission-denied']);
    expect(findings[0]?.message).toContain('permission denied for schema work');
    // Without a schema of its own, nothing is needed to look.
    const silent = `insert into queue_workers (name, queues, seen_at) values ('w', '[]', now() - interval '1 day');`;
    expect(await foundAfter(`${TUNED} ${silent} ${asNobody}`)).toEqual([]);
  });

  test('partitioned by queue, as they should be', async () => {
    const findings = await foundAfter(`
      alter table queue_jobs rename to flat;
      alter index queue_jobs_pkey rename to flat_pkey;
      alter index queue_jobs_claim_idx rename to flat_claim_idx;
      alter index queue_jobs_unique_key_idx rename to flat_unique_key_idx;
      alter index queue_jobs_group_idx rename to flat_group_idx;
      alter index queue_jobs_waiting_key_idx rename to flat_waiting_key_idx;
      alter index queue_jobs_batch_idx rename to flat_batch_idx;
      alter index queue_jobs_failed_idx rename to flat_failed_idx;
      create table queue_jobs (like flat including defaults including constraints) partition by list (queue);
      create table jobs_mail partition of queue_jobs for values in ('mail');
      create table jobs_other partition of queue_jobs default;
      alter table queue_jobs alter column id add generated always as identity;
      alter table queue_jobs add primary key (id, queue);
      create index on queue_jobs (priority, queue, run_at, id) where group_key is null;
      create index on queue_jobs (queue, group_key, priority, run_at, id) where group_key is not null;
      create unique index on queue_jobs (queue, kind, waiting_key) where waiting_key is not null;
      create index on queue_jobs (batch_id) where batch_id is not null;
      create index on queue_jobs (queue, run_at, id) where errors <> '[]'::jsonb;
      create unique index on queue_jobs (queue, kind, unique_key) where unique_key is not null;
      alter table queue_results set (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_insert_scale_factor = 0.05);
      alter table jobs_mail set (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.05)`);
    expect(codes(findings)).toEqual(['not-tuned']);
    expect(findings[0]?.message).toContain('each partition of "queue_jobs"');
  });
});

describe('columns', () => {
  const columns = Object.values(tables).flatMap((table: PgTable) => {
    const { name, columns } = getTableConfig(table);
    return columns.map((column) => [name, column.name, column.notNull] as const);
  });

  test.each(columns)('%s has no %s', async (table, column) => {
    const findings = await foundAfter(`${TUNED} alter table ${table} drop column ${column} cascade`);
    expect(findings).toContainEqual({
      code: 'column-missing',
      severity: 'error',
      message: `The table "${table}" has no column ${column}`,
      fix: expect.stringContaining('drizzle-kit migrate'),
    });
    // Its indexes and constraints went with it.
    expect(codes(findings).filter((code) => !/^(column|index|check)-missing$/.test(code))).toEqual([]);
  });

  test.each<[string, string]>([
    ['alter column payload type json', 'payload of "queue_jobs" is json, not jsonb'],
    ['alter column run_at type timestamp', 'run_at of "queue_jobs" is timestamp without time zone, not'],
    ['alter column kind drop not null', 'kind of "queue_jobs" may be null'],
    ['alter column unique_key set not null', 'unique_key of "queue_jobs" is NOT NULL'],
    ['alter column created_at drop default', 'created_at of "queue_jobs" has lost its default'],
    ['alter column id drop identity', 'id of "queue_jobs" has lost its default'],
    [
      'alter column errors drop default, alter column errors drop not null',
      'errors of "queue_jobs" may be null and has lost its default',
    ],
  ])('%s', async (change, message) => {
    const findings = await foundAfter(`${TUNED} alter table queue_jobs ${change}`);
    expect(codes(findings)).toEqual(['column-differs']);
    expect(findings[0]?.message).toContain(message);
  });

  test('that no insert fills', async () => {
    const added = await foundAfter(`${TUNED} alter table queue_jobs add column tenant_id int not null`);
    expect(codes(added)).toEqual(['column-unexpected']);
    expect(added[0]?.message).toContain('The column tenant_id of "queue_jobs" is NOT NULL without a default');
    const harmless = ['int', 'int not null default 0', 'int generated always as (1) stored not null'];
    for (const definition of harmless) {
      expect(await foundAfter(`${TUNED} alter table queue_jobs add column more ${definition}`)).toEqual([]);
    }
  });
});

describe('indexes and constraints', () => {
  test.each<[string, FindingCode, Finding['severity'], string]>([
    [
      'drop index queue_jobs_claim_idx',
      'index-missing',
      'warning',
      'no index (priority, queue, run_at, id) where …: its statements read the whole table',
    ],
    [
      'drop index queue_jobs_unique_key_idx',
      'index-missing',
      'error',
      'no unique index (queue, kind, unique_key) where …: every enqueue with a unique key fails',
    ],
    ['drop index queue_results_finished_at_idx', 'index-missing', 'warning', 'no index (finished_at)'],
    [
      'alter table queue_jobs drop constraint queue_jobs_pkey',
      'index-missing',
      'error',
      'no primary key (id, queue)',
    ],
    [
      'alter table queue_workers drop constraint queue_workers_pkey',
      'index-missing',
      'error',
      'no primary key (id)',
    ],
    [
      'drop index queue_jobs_claim_idx; create index queue_jobs_claim_idx on queue_jobs (queue, priority, run_at, id)',
      'index-differs',
      'warning',
      'not the index (priority, queue, run_at, id) where … but index (queue, priority, run_at, id)',
    ],
    [
      'drop index queue_jobs_unique_key_idx; create index queue_jobs_unique_key_idx on queue_jobs (queue, kind, unique_key) where unique_key is not null',
      'index-differs',
      'error',
      'not the unique index',
    ],
    [
      'alter table queue_jobs drop constraint queue_jobs_priority_check',
      'check-missing',
      'warning',
      'The constraint queue_jobs_priority_check of "queue_jobs" is missing',
    ],
    [
      'create index mine on queue_jobs (kind, worker_id)',
      'index-on-claim-column',
      'warning',
      'The index mine of "queue_jobs" has worker_id, written while jobs are claimed and run',
    ],
    [
      'create index mine on queue_jobs (kind) where claimed_at is null and attempt > 0',
      'index-on-claim-column',
      'warning',
      'has attempt, claimed_at, written while jobs are claimed and run',
    ],
    [
      'create index mine on queue_jobs (kind) where cancel_reason is not null',
      'index-on-claim-column',
      'warning',
      'has cancel_reason, written',
    ],
    [
      'create index mine on queue_jobs (progress)',
      'index-on-claim-column',
      'warning',
      'has progress, written',
    ],
  ])('%s', async (change, code, severity, message) => {
    const findings = await foundAfter(`${TUNED} ${change}`);
    expect(findings).toEqual([
      { code, severity, message: expect.stringContaining(message), fix: expect.any(String) },
    ]);
  });

  test.each([
    'alter index queue_jobs_claim_idx rename to another_name',
    'alter table queue_jobs drop constraint queue_jobs_pkey; alter table queue_jobs add primary key (queue, id)',
    "create index mine on queue_jobs ((metadata->>'tenant'), kind)",
    'create index mine on queue_results (worker_id, attempt)',
  ])('nothing is wrong with: %s', async (change) => {
    expect(await foundAfter(`${TUNED} ${change}`)).toEqual([]);
  });

  test('an index that is invalid, as a failed CREATE INDEX CONCURRENTLY leaves it', async () => {
    await database.client`alter index queue_jobs_unique_key_idx rename to valid_idx`;
    try {
      await addJob(database.client, { kind: 'twice' });
      await addJob(database.client, { kind: 'twice' });
      const create = database.client`
        create unique index concurrently queue_jobs_unique_key_idx on queue_jobs (queue, kind)
          where unique_key is null`;
      await expect(create).rejects.toThrow('could not create unique index');
      const found = (await queue.check(database.db)).find(({ code }) => code === 'index-invalid');
      expect(found).toMatchObject({
        severity: 'error',
        message: expect.stringContaining('The index queue_jobs_unique_key_idx of "queue_jobs" is invalid'),
        fix: expect.stringContaining('reindex index concurrently "queue_jobs_unique_key_idx"'),
      });
    } finally {
      await database.client`drop index if exists queue_jobs_unique_key_idx`;
      await database.client`alter index valid_idx rename to queue_jobs_unique_key_idx`;
      await emptyTables(database.client, 'queue_jobs');
    }
  });
});

describe('upkeep', () => {
  test('says which storage parameters are missing', async () => {
    const findings = await foundAfter(`${TUNED} alter table queue_jobs reset (fillfactor)`);
    expect(findings).toEqual([
      {
        code: 'not-tuned',
        severity: 'hint',
        message: '"queue_jobs" has no fillfactor; set it for hundreds of jobs per second or more',
        fix: 'In a custom migration: alter table "queue_jobs" set (fillfactor = 50)',
      },
    ]);
  });

  test.each(['queue_jobs', 'queue_results'])('autovacuum that is off for %s', async (table) => {
    const findings = await foundAfter(`${TUNED} alter table ${table} set (autovacuum_enabled = off)`);
    expect(codes(findings)).toEqual(['autovacuum-off']);
    expect(findings[0]?.fix).toBe(`alter table "${table}" reset (autovacuum_enabled)`);
  });

  test('workers that nobody has declared gone', async () => {
    const findings = await foundAfter(`${TUNED}
      insert into queue_workers (name, queues, seen_at) values
        ('live', '[]', now() - interval '1 minute'), ('late', '[]', now() - interval '6 minutes'),
        ('dead', '[]', now() - interval '3 days')`);
    expect(findings.map(({ code, worker, message }) => [code, worker, message.split(',')[0]])).toEqual([
      ['worker-silent', 'dead', "The worker 'dead' was last seen 3 days ago"],
      ['worker-silent', 'late', "The worker 'late' was last seen 6 minutes ago"],
    ]);
  });

  test('jobs in groups that workers of these limits do not see', async () => {
    const change = `${TUNED}
      insert into queue_workers (name, queues) values ('live', '["grouped", "plain", "declared"]');
      insert into queue_jobs (queue, kind, group_key, payload, max_attempts)
        values ('grouped', 'k', 'a', 'null', 1), ('grouped', 'k', 'b', 'null', 1), ('plain', 'k', null, 'null', 1);
      insert into queue_jobs (queue, kind, group_key, payload, max_attempts, worker_id, attempt, claimed_at)
        values ('grouped', 'k', 'of a dead worker', 'null', 1, 1000000, 1, now())`;
    const findings = await foundAfter(change);
    expect(findings).toMatchObject([{ code: 'groups-undeclared', queue: 'grouped' }]);
    expect(findings[0]?.message).toContain("Jobs of 'grouped' are in groups");
    // The fix mends it.
    expect(await foundAfter(`${change}; ${findings[0]?.fix.replace(/^.*: (?=update)/, '')}`)).toEqual([]);
    const declaring = createQueue({ limits: limitsIn(control, { grouped: { groups: {} } }) });
    expect(codes(await foundAfter(change, { with: declaring }))).not.toContain('groups-undeclared');
  });

  test('groups on Citus, which refuses their claims', async () => {
    const change = `${TUNED} ${(await controlStatements()).join(';')}; ${AS_ON_CITUS}`;
    const grouped = createQueue({ limits: limitsIn(control, { q: { groups: {} }, p: { concurrency: 1 } }) });
    const found = await foundAfter(change, { with: grouped });
    expect(found.filter(({ code }) => code === 'groups-on-citus')).toMatchObject([
      {
        severity: 'error',
        message: expect.stringContaining("The limits of the queue 'q' put its jobs into groups"),
      },
    ]);
    const plain = createQueue({ limits: limitsIn(control, { p: { concurrency: 1 } }) });
    expect(codes(await foundAfter(change, { with: plain }))).not.toContain('groups-on-citus');
  });

  test('workflows on Citus, which refuses their statements; and their tables, anywhere', async () => {
    const working = createQueue({ workflows: workflowsIn(workflows) });
    expect((await working.check(database.db)).filter(({ code }) => code === 'tables-missing')).toMatchObject([
      { severity: 'error', message: expect.stringContaining('"queue_tallies" do not exist, so no workflow') },
    ]);
    const change = `${TUNED} ${(await workflowsStatements()).join(';')}; ${AS_ON_CITUS}`;
    expect(await foundAfter(change, { with: working })).toMatchObject([
      {
        code: 'workflows-on-citus',
        severity: 'error',
        message: expect.stringContaining('Citus refuses the statements that receive their signals'),
      },
    ]);
    expect(codes(await foundAfter(change))).not.toContain('workflows-on-citus');
  });

  test('ids on a node of Citus that JavaScript cannot hold', async () => {
    const of = (groupId: number) => {
      const first = BigInt(groupId) * 2n ** 48n + 1n;
      return `${TUNED} alter sequence queue_jobs_id_seq minvalue ${first} start ${first} restart; ${AS_ON_CITUS}`;
    };
    expect(await foundAfter(of(32))).toMatchObject([
      { code: 'ids-too-large', severity: 'error', message: expect.stringContaining('never end') },
    ]);
    expect(codes(await foundAfter(of(31)))).not.toContain('ids-too-large');
  });

  test('groups that a discarded job has stopped, under limits that let them go on', async () => {
    const change = `${TUNED} ${(await controlStatements()).join(';')};
      insert into queue_holds (queue, group_key, job_id, until) values ('q', 'b', 1, 'infinity'),
        ('q', 'b', 2, 'infinity'), ('q', 'a', 3, 'infinity'), ('q', 'c', 4, now() + interval '1 hour'),
        ('undeclared', 'a', 5, 'infinity')`;
    const declaring = (serial?: 'end' | 'success') =>
      createQueue({ limits: limitsIn(control, { q: { groups: { serial } } }) });
    for (const serial of [undefined, 'end'] as const) {
      const found = await foundAfter(change, { with: declaring(serial) });
      expect(codes(found)).toContain('groups-stopped');
      expect(found.find(({ code }) => code === 'groups-stopped')?.message).toContain(
        "2 groups of 'q' are stopped by discarded jobs (the first group is 'a')",
      );
    }
    expect(codes(await foundAfter(change, { with: declaring('success') }))).not.toContain('groups-stopped');
  });
});

test('errors come first, then warnings, then hints', async () => {
  const findings = await foundAfter(`
    alter table queue_results drop constraint queue_results_state_check;
    alter table queue_jobs set (autovacuum_enabled = off);
    drop table queue_workers`);
  expect(findings.map(({ severity }) => severity)).toEqual(['error', 'warning', 'warning', 'hint', 'hint']);
});

test('a database that cannot be reached is the driver’s error', async () => {
  const client = postgres('postgres://127.0.0.1:1/none', { connect_timeout: 2 });
  await expect(queue.check(drizzle({ client }))).rejects.toMatchObject({ cause: { code: 'ECONNREFUSED' } });
  await client.end();
});

test.skipIf(!hasPostgres('13'))('PostgreSQL 13 and a server without autovacuum', async () => {
  const server = await startPostgres({ version: '13', settings: { autovacuum: false } });
  const client = postgres(server.url, { onnotice: () => {} });
  try {
    const findings = await queue.check(drizzle({ client }));
    expect(codes(findings)).toEqual(['postgres-too-old', 'tables-missing', 'autovacuum-off']);
    expect(findings[0]?.message).toContain('needs PostgreSQL 14 or newer; this server is 13.');
    expect((await inspectServer(drizzle({ client }), tables)).autovacuum).toBe(false);
  } finally {
    await client.end();
    await server.stop();
  }
});

test.each([
  ['CockroachDB CCL v25.2.1 (x86_64-pc-linux-gnu)', 'CockroachDB'],
  ['PostgreSQL 15.12-YB-2025.2.0.0-b0 on x86_64-pc-linux-gnu, compiled by clang, Yugabyte', 'Yugabyte'],
  ['PostgreSQL 8.0.2 on i686-pc-linux-gnu, Redshift 1.0.77467', 'Redshift'],
])('a server that calls itself %s: the product by its name', async (product, name) => {
  const [finding, ...others] = checkServer({ ...(await inspectServer(database.db, tables)), product });
  expect(others).toEqual([]);
  expect(finding).toMatchObject({ code: 'not-postgres', severity: 'error' });
  expect(finding?.message).toContain(`This server is ${name}, which `);
});

test('a standby: that it is one', async () => {
  const primary = await startPostgres();
  const standby = await startStandby(primary);
  const client = postgres(standby.url, { onnotice: () => {} });
  try {
    await until(async () => (await client`select 1`).length === 1);
    const findings = await queue.check(drizzle({ client }));
    expect(codes(findings)).toContain('read-only');
    expect(findings.find(({ code }) => code === 'read-only')?.message).toContain('the server is a standby');
  } finally {
    await client.end();
    await standby.stop();
    await primary.stop();
  }
});

test('jobs that are parked because their claim was refused, and one that idle workers leave out', async () => {
  const found = await foundAfter(`
    insert into queue_workers (name, queues, kinds) values ('w', '["q"]', '["k"]');
    insert into queue_jobs (queue, kind, payload, max_attempts, run_at, errors)
      values ('q', 'k', 'null', 1, 'infinity', '[{"attempt": 1, "name": "ClaimRefusedError"}]'),
        ('q', 'k', 'null', 1, 'infinity', '[{"attempt": 1, "name": "Error"}]'),
        ('q', 'k', 'null', 1, now() - interval '5 minutes', '[]')`);
  const refused = found.filter(({ code }) => code === 'claims-refused');
  expect(refused).toMatchObject([
    { severity: 'warning', queue: 'q' },
    { severity: 'warning', queue: 'q', kind: 'k' },
  ]);
  expect(refused.map(({ message }) => message.replace(/job \d+/, 'job #'))).toEqual([
    "1 job of 'q' is parked because the database refused its claim: job #",
    "Workers of 'q' skip job # ('k'), which has been due for 5 minutes: the database refuses its claim, or " +
      'a transaction has locked its row',
  ]);
});

describe('while another transaction locks a table', () => {
  beforeAll(async () => {
    await addControlTables(locked);
    await locked.client`insert into queue_workers (name, queues, kinds) values ('w', '["mail"]', '["k"]')`;
  });

  test.for([
    ['queue_workers', /^Timed out looking at silent workers, workers(, groups)?: another transaction locks/],
    ['queue_pauses', /^Timed out looking at pauses: another transaction locks/],
    ['queue_jobs', /^Timed out looking at unserved kinds, refused claims(, groups)?: another/],
    ['queue_schedules', /^Timed out looking at schedules: another transaction locks/],
  ] as const)('%s, it is found, and so is what can be seen', async ([table, message]) => {
    const [holder] = await locked.connect();
    if (holder === undefined) throw new Error('there is no connection');
    const of = createQueue({ schedules: schedulesIn(control.queueSchedules) });
    const findings = await holder.db.transaction(async (tx) => {
      await tx.execute(sql.raw(`lock table ${table} in access exclusive mode`));
      return await of.check(locked.db);
    });
    expect(codes(findings)).toEqual(['timed-out', 'not-tuned', 'not-tuned']);
    expect(findings[0]?.message).toMatch(message);
    expect(codes(await of.check(locked.db))).not.toContain('timed-out');
  });
});

test('every finding has an entry in the guide', async () => {
  const all: Record<FindingCode, true> = {
    'autovacuum-off': true,
    'check-missing': true,
    'claims-refused': true,
    'column-differs': true,
    'column-missing': true,
    'column-unexpected': true,
    'groups-on-citus': true,
    'workflows-on-citus': true,
    'groups-stopped': true,
    'groups-undeclared': true,
    'ids-too-large': true,
    'index-differs': true,
    'index-invalid': true,
    'index-missing': true,
    'index-on-claim-column': true,
    'kind-unserved': true,
    'not-postgres': true,
    'not-tuned': true,
    'permission-denied': true,
    'policy-missing': true,
    'pooled-by-transaction': true,
    'postgres-too-old': true,
    'queues-unchecked': true,
    'read-only': true,
    'single-connection': true,
    'tables-elsewhere': true,
    'tables-missing': true,
    'timed-out': true,
    'worker-silent': true,
  };
  const guide = await readFile('docs/troubleshooting.md', 'utf8');
  expect(Object.keys(all).filter((code) => !guide.includes(`\`${code}\``))).toEqual([]);
});
