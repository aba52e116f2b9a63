import { sql } from 'drizzle-orm';
import postgres from 'postgres';
import { beforeEach, describe, expect, test, vi } from 'vitest';
import { beginByKeptPlan } from '../../src/core/queries/begin/begin-jobs.ts';
import { claimByKeptPlan, claimJobs } from '../../src/core/queries/claim/claim-jobs.ts';
import { finishJobs } from '../../src/core/queries/settle/finish-jobs.ts';
import type { Database, Runner } from '../../src/core/sql/executor.ts';
import { ClaimTries } from '../../src/core/worker/claim/claim-tries.ts';
import { Claims } from '../../src/core/worker/claim/claims.ts';
import { Lane } from '../../src/core/worker/claim/lane.ts';
import { Statements, type WorkerRunner } from '../../src/core/worker/statements/statements.ts';
import { claimOf, clearTables, fillJobs, tables } from '../queries/support/jobs.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { demandFor, nextClaim } from '../worker/support/next-claim.ts';

const database = useTestDatabase({ max: 1 });
const refused = vi.fn();

/** Runs statements as a worker runs its hot ones. */
function preparing(db: Database): WorkerRunner {
  return new Statements({ db, open: undefined, onRefused: refused, onPoolEnded: () => undefined }).of(
    'claims',
    { prepared: true },
  );
}

beforeEach(async () => {
  refused.mockReset();
  await clearTables(database.client);
});

function lanesOf(kind: string, queue = 'q'): readonly Lane[] {
  const attempts = { paused: false };
  const options = { queue, quietMs: () => 0, agingMs: undefined, attempts, wake: () => {} };
  return [new Lane(options, [kind])];
}

interface Prepared {
  readonly custom_plans: string;
  readonly generic_plans: string;
}

/** The server's statements that claim and settle. */
async function preparedStatements(): Promise<Prepared[]> {
  return await database.client<Prepared[]>`
    select custom_plans, generic_plans from pg_prepared_statements where statement ~ '^\\s*with'`;
}

async function claimAndFinish(db: Runner, limit: number): Promise<number> {
  const jobs = await claimJobs(db, tables, claimOf({ limit }));
  const finished = await finishJobs(
    db,
    tables,
    { queue: 'q', workerId: 1 },
    [...jobs, { id: 1, fence: 99 }].map(({ id, fence }) => ({
      id,
      fence,
      transition: { type: 'finish', state: 'completed', output: null, error: null, keepResult: true },
    })),
  );
  return finished.size;
}

test('claims and settlements are prepared on postgres.js, and answer as without', async () => {
  const db = preparing(database.db);
  await fillJobs(database.client, 10);
  expect(await claimAndFinish(db, 4)).toBe(4);
  expect(await claimAndFinish(database.db, 4)).toBe(4);
  expect(await claimAndFinish(db, 4)).toBe(2);
  expect(await preparedStatements()).toHaveLength(2);
  expect(refused).not.toHaveBeenCalled();
});

test('are planned for what the table holds, also when it was empty at first', async () => {
  await database.client`alter table queue_jobs set (autovacuum_enabled = off)`;
  await fillJobs(database.client, 100);
  await database.client`delete from queue_jobs`;
  // Now its size is 0 pages, and nothing looks cheaper than reading all of them.
  await database.client`vacuum analyze queue_jobs`;
  const db = preparing(database.db);
  for (let times = 0; times < 20; times++) await claimAndFinish(db, 10);
  await fillJobs(database.client, 20_000);
  for (let times = 0; times < 20; times++) expect(await claimAndFinish(db, 10)).toBe(10);
  const statements = await preparedStatements();
  expect(statements).toHaveLength(2);
  for (const { custom_plans, generic_plans } of statements) {
    // One that was prepared by the test before may have been executed more often.
    expect(Number(custom_plans)).toBeGreaterThanOrEqual(40);
    expect(Number(generic_plans)).toBe(0);
  }
});

test('claims of a small table keep their plan, and do nothing in a larger one', async () => {
  const { client } = database;
  await client`alter table queue_jobs set (autovacuum_enabled = off)`;
  // A vacuum may leave a table as large as it was.
  await client`truncate queue_jobs`;
  await client`vacuum analyze queue_jobs`;
  const db = preparing(database.db);
  const claim = () => claimByKeptPlan(db, tables, { ...claimOf({ limit: 2 }), ifTableIs: 'small' });
  for (let times = 0; times < 20; times++) expect(await claim()).toEqual([]);
  await fillJobs(client, 3);
  expect(await claim()).toHaveLength(2);
  expect(await claim()).toHaveLength(1);
  const [plans] = await client<Prepared[]>`
    select custom_plans, generic_plans from pg_prepared_statements where statement ~ '^\\s*with table_size'`;
  expect(Number(plans?.generic_plans)).toBeGreaterThanOrEqual(15);

  await fillJobs(client, 20_000);
  await client.unsafe('begin');
  const read = async () => {
    const [row] = await client`select pg_stat_get_xact_tuples_returned('queue_jobs'::regclass)::int4 as rows`;
    return row?.rows;
  };
  const before = await read();
  expect(await claim()).toBeUndefined();
  expect(await read()).toBe(before);
  await client.unsafe('rollback');
  const holder = { db: database.db, tables, queue: 'q', workerId: 1, demand: demandFor(5) };
  const tries = new ClaimTries({ ...holder, mayPark: true });
  const claims = new Claims({ ...holder, runner: db, lanes: lanesOf('k'), tries });
  expect((await nextClaim(claims)).jobs).toHaveLength(5);
  expect((await nextClaim(claims)).jobs).toHaveLength(5);
});

test('a table that shrinks and grows again is never read whole, whichever queue has seen it small', async () => {
  const { client } = database;
  await client`alter table queue_jobs set (autovacuum_enabled = off)`;
  const runner = preparing(database.db);
  // Afresh: another test of this process may have made this table smaller.
  vi.resetModules();
  const fresh = await import('../../src/core/worker/claim/claims.ts');
  const claimsOf = (queue: string) => {
    const holder = { db: database.db, tables, queue, workerId: 1, demand: demandFor(5) };
    const tries = new ClaimTries({ ...holder, mayPark: true });
    return new fresh.Claims({ ...holder, runner, lanes: lanesOf('k', queue), tries });
  };
  const [busy, resting] = [claimsOf('busy'), claimsOf('resting')];
  for (const queue of ['busy', 'resting']) await fillJobs(client, 10_000, queue);
  for (let times = 0; times < 10; times++) {
    expect((await nextClaim(busy)).jobs).toHaveLength(5);
    expect((await nextClaim(resting)).jobs).toHaveLength(5);
  }
  const [kept] = await client<Prepared[]>`
    select custom_plans, generic_plans from pg_prepared_statements where statement ~ '^\\s*with table_size' and statement ~ 'as grown'`;
  expect(Number(kept?.generic_plans)).toBeGreaterThanOrEqual(10);
  await client`truncate queue_jobs`;
  await client`vacuum analyze queue_jobs`;
  expect((await nextClaim(busy)).jobs).toEqual([]);
  await fillJobs(client, 20_000, 'resting');
  const read = async () => {
    const [row] = await client<{ rows: number }[]>`
      select pg_stat_get_xact_tuples_returned('queue_jobs'::regclass)::int4 as rows`;
    return row?.rows ?? Number.NaN;
  };
  await client.unsafe('begin');
  const before = await read();
  expect((await nextClaim(resting)).jobs).toHaveLength(5);
  expect((await read()) - before).toBeLessThan(1_000);
  await client.unsafe('rollback');
});

test('beginnings in a grown table keep a plan by its primary key', async () => {
  const { client } = database;
  await client`alter table queue_jobs set (autovacuum_enabled = off)`;
  await client`truncate queue_jobs`;
  const db = preparing(database.db);
  const holder = { queue: 'q', workerId: 1 };
  const claimed = () => claimJobs(db, tables, claimOf({ limit: 5, beginning: 0 }));
  const begunAmong = async (ids: readonly number[]) => {
    const rows = await client<{ id: number }[]>`
      select id::int from queue_jobs where claimed_at is not null and id = any(${[...ids]})`;
    return new Set(rows.map(({ id }) => id));
  };
  await fillJobs(client, 5);
  await client`update queue_jobs set max_attempts = 1`;
  const few = await claimed();
  const options = { ifTableIs: 'grown' } as const;
  expect(await beginByKeptPlan(db, tables, holder, few, options)).toBeUndefined();
  expect(await begunAmong(few.map(({ id }) => id))).toEqual(new Set());

  // The last rows stay, so that a vacuum cannot make the table smaller: almost all of it is empty.
  await fillJobs(client, 40_000);
  await client`delete from queue_jobs where id < (select max(id) - 100 from queue_jobs)`;
  await client`vacuum analyze queue_jobs`;
  await client`update queue_jobs set max_attempts = 1`;
  const jobs = await claimed();
  const lost = jobs.map(({ id, fence }) => ({ id, fence: fence + 1 })).slice(0, 1);
  const kept = jobs.slice(1);
  const keptIds = new Set(kept.map(({ id }) => id));
  expect(keptIds.size).toBe(4);
  const scans = async () => {
    const [row] = await client`select pg_stat_get_xact_numscans('queue_jobs'::regclass)::int4 as scans`;
    return row?.scans;
  };
  await client.unsafe('begin');
  const before = await scans();
  for (let times = 0; times < 20; times++) {
    expect(await beginByKeptPlan(db, tables, holder, [...lost, ...kept], options)).toEqual(keptIds);
  }
  expect(await scans()).toBe(before);
  await client.unsafe('commit');
  expect(await begunAmong(jobs.map(({ id }) => id))).toEqual(keptIds);
  const [plans] = await client<Prepared[]>`
    select custom_plans, generic_plans from pg_prepared_statements
    where statement ~ 'claimed_at = least' and statement ~ '^\\s*with table_size'`;
  expect(Number(plans?.generic_plans)).toBeGreaterThanOrEqual(15);
});

describe('where statements cannot be prepared', () => {
  test('by the client’s own setting: none is', async () => {
    const client = postgres(database.url, { max: 1, prepare: false, onnotice: () => {} });
    const { drizzle } = await import('drizzle-orm/postgres-js');
    const db = preparing(drizzle({ client }));
    await fillJobs(database.client, 2);
    expect(await claimAndFinish(db, 2)).toBe(2);
    const statements = await client`select from pg_prepared_statements`.simple();
    await client.end();
    expect(statements).toHaveLength(0);
  });

  // A pooler says so; here the answer is put into the client's mouth, and the rest is real.
  test.each(['26000', '42P05', '0A000'])(
    'and the server says %s: the statement is repeated without',
    async (code) => {
      let asked = 0;
      const client = new Proxy(database.client, {
        get: (target, name) =>
          name === 'unsafe'
            ? async () => {
                asked++;
                throw Object.assign(new Error('no'), { code });
              }
            : Reflect.get(target, name),
      });
      const db = new Proxy(database.db, {
        get: (target, name) => (name === '$client' ? client : Reflect.get(target, name)),
      });
      const runner = preparing(db);
      await fillJobs(database.client, 5);
      expect(await claimAndFinish(runner, 2)).toBe(2);
      expect(await claimAndFinish(runner, 3)).toBe(3);
      expect(refused).toHaveBeenCalledTimes(1);
      expect(asked).toBe(1);
    },
  );

  test('and another error is passed on', async () => {
    const runner = preparing(database.db);
    await expect(runner.execute(sql`select 1 / 0 + ${1}::int`)).rejects.toThrow('division by zero');
    expect(refused).not.toHaveBeenCalled();
  });
});
