import { drizzle as drizzleNodePostgres } from 'drizzle-orm/node-postgres';
import { drizzle as drizzleProxy } from 'drizzle-orm/pg-proxy';
import { drizzle } from 'drizzle-orm/postgres-js';
import { createQueue, type Executor } from 'drizzle-queue';
import pg from 'pg';
import postgres from 'postgres';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import {
  areShared,
  isPooledByTransaction,
  type Observation,
} from '../../src/core/drivers/pooled-by-transaction.ts';
import { hasPgBouncer, type PgBouncer, startPgBouncer } from '../faults/pgbouncer.ts';
import { openPglite } from '../support/pglite.ts';
import { useTestDatabase } from '../support/test-database.ts';

const queue = createQueue();
const database = useTestDatabase();

/** Codes of what `check` says about a pooler. */
async function saidOf(db: Executor): Promise<readonly string[]> {
  const findings = await queue.check(db);
  return findings.flatMap(({ code, message, fix }) =>
    code === 'pooled-by-transaction' ? [`${message} | ${fix}`] : [],
  );
}

/** Opens a database of each driver, and closes it after the test. */
const open = {
  'postgres.js': (url: string, max: number) => {
    const client = postgres(url, { max, prepare: false, onnotice: () => {} });
    onTestFinished(() => client.end({ timeout: 1 }));
    return { db: drizzle({ client }) as Executor, run: (text: string) => client.unsafe(text) };
  },
  'node-postgres, a pool': (url: string, max: number) => {
    const client = new pg.Pool({ connectionString: url, max });
    onTestFinished(() => client.end());
    return { db: drizzleNodePostgres({ client }) as Executor, run: (text: string) => client.query(text) };
  },
};

type Driver = keyof typeof open;
const drivers: readonly Driver[] = ['postgres.js', 'node-postgres, a pool'];

async function openClient(url: string): Promise<Executor> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  onTestFinished(() => client.end());
  return drizzleNodePostgres({ client });
}

describe('what is seen', () => {
  const seen = (...observations: [connection: string, pid: number][]): Observation[] =>
    observations.map(([connection, pid]) => ({ connection, told: 0, pid }));

  test.each([
    ['one connection with two processes', seen(['a', 1], ['a', 2])],
    ['and others in between', seen(['a', 1], ['b', 3], ['c', 4], ['a', 2])],
    ['the process of one between two statements of it', seen(['a', 1], ['b', 1], ['a', 1])],
    ['and others in between', seen(['c', 9], ['a', 1], ['c', 9], ['b', 1], ['c', 9], ['a', 1])],
  ])('is shared: %s', (_, observations) => {
    expect(areShared(observations)).toBe(true);
  });

  test.each([
    ['nothing', []],
    ['one statement', seen(['a', 1])],
    ['each has its own', seen(['a', 1], ['b', 2], ['a', 1], ['b', 2])],
    // In session mode the next client gets what the one before has left.
    ['one after the other', seen(['a', 1], ['a', 1], ['b', 1], ['b', 1])],
  ])('is not known to be shared: %s', (_, observations) => {
    expect(areShared(observations)).toBe(false);
  });
});

describe('without a pooler', () => {
  test.each(drivers)('%s: nothing is found, by one statement on one connection', async (driver) => {
    const { db } = open[driver](database.url, 5);
    const sent: string[] = [];
    expect(await isPooledByTransaction(counting(db, sent))).toBe(false);
    expect(sent).toHaveLength(1);
    expect(await saidOf(db)).toEqual([]);
    const rows = await database.client`
      select from pg_stat_activity where datname = current_database() and query = 'select pg_backend_pid() as pid'`;
    expect(rows.length).toBeLessThanOrEqual(1);
  });

  test('nothing on one client of node-postgres', async () => {
    expect(await saidOf(await openClient(database.url))).toEqual([]);
  });

  test('nothing is asked where a driver does not tell what it was told, or keeps its connection', async () => {
    const client = await openPglite();
    onTestFinished(() => client.close());
    const { drizzle: drizzlePglite } = await import('drizzle-orm/pglite');
    expect(await saidOf(drizzlePglite({ client }))).toEqual([]);
    const proxied: string[] = [];
    const proxy = drizzleProxy(async (text) => {
      proxied.push(text);
      return { rows: [] };
    });
    expect(await isPooledByTransaction(proxy)).toBe(false);
    expect(proxied).toEqual([]);
    await database.db.transaction(async (tx) => {
      expect(await isPooledByTransaction(tx)).toBe(false);
    });
    for (const nothing of [undefined, null, {}, { $client: null }, { $client: () => 1 }]) {
      // What callers without TypeScript may give.
      expect(await isPooledByTransaction(nothing as unknown as Executor)).toBe(false);
    }
  });
});

/** The same database, whose client notes what is asked through it. */
function counting(db: Executor, sent: string[]): Executor {
  const client: unknown = Reflect.get(db, '$client');
  const counted = new Proxy(client as object, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name);
      if ((name !== 'unsafe' && name !== 'connect') || typeof value !== 'function') return value;
      return (...args: unknown[]) => {
        sent.push(String(name));
        return Reflect.apply(value, target, args);
      };
    },
  });
  return Object.create(db, { $client: { value: counted } });
}

const installed = hasPgBouncer();
const why = installed ? '' : ' (skipped: PgBouncer is not installed, apt-get install pgbouncer)';

describe.skipIf(!installed)(`behind PgBouncer in transaction mode${why}`, () => {
  let pgBouncer: PgBouncer;
  beforeAll(async () => {
    pgBouncer = await startPgBouncer(database.url, 4);
  });
  afterAll(() => pgBouncer.stop());

  test.each(drivers)('%s: it is named in one sentence', async (driver) => {
    const { db } = open[driver](pgBouncer.url(database.url), 3);
    const [said, ...more] = await saidOf(db);
    expect(more).toEqual([]);
    expect(said).toContain('You connect through a transaction-mode pooler');
    expect(said).toContain('listen: false');
    // And it goes on as before.
    expect(await saidOf(db)).toHaveLength(1);
  });

  test.each(drivers)('%s: also while many others use both', async (driver) => {
    const { db, run } = open[driver](pgBouncer.url(database.url), 6);
    let over = false;
    const others = Array.from({ length: 12 }, async () => {
      while (!over) await run('select pg_sleep(random() * 0.01)');
    });
    try {
      expect(await isPooledByTransaction(db)).toBe(true);
    } finally {
      over = true;
      await Promise.all(others);
    }
  });

  test('two checks of one pool of two connections do not wait for each other', async () => {
    const { db } = open['node-postgres, a pool'](pgBouncer.url(database.url), 2);
    const startMs = performance.now();
    expect(await Promise.all(Array.from({ length: 4 }, () => saidOf(db)))).toHaveLength(4);
    expect(performance.now() - startMs).toBeLessThan(30_000);
    // All that it took is given back.
    expect(await saidOf(db)).toHaveLength(1);
  });

  test.each(drivers)('%s, one connection: nothing is said that was not seen', async (driver) => {
    const { db, run } = open[driver](pgBouncer.url(database.url), 1);
    expect(await saidOf(db)).toEqual([]);
    await run('select 1');
    const [other] = [open['node-postgres, a pool'](pgBouncer.url(database.url), 8)];
    // Others take the connections to the server in turns, so this one is given another each time.
    let over = false;
    const others = Array.from({ length: 8 }, async () => {
      while (!over) await other.run('select pg_sleep(random() * 0.01)');
    });
    try {
      expect(await isPooledByTransaction(db)).toBe(true);
    } finally {
      over = true;
      await Promise.all(others);
    }
  });

  test('a transaction keeps its connection, so nothing is known', async () => {
    const client = postgres(pgBouncer.url(database.url), { max: 3, prepare: false });
    onTestFinished(() => client.end({ timeout: 1 }));
    await drizzle({ client }).transaction(async (tx) => expect(await saidOf(tx)).toEqual([]));
  });
});

describe.skipIf(!installed)(`behind PgBouncer in session mode${why}`, () => {
  let pgBouncer: PgBouncer;
  beforeAll(async () => {
    pgBouncer = await startPgBouncer(database.url, 20, { mode: 'session' });
  });
  afterAll(() => pgBouncer.stop());

  test.each(drivers)('%s: everything passes it, so nothing is said', async (driver) => {
    const { db } = open[driver](pgBouncer.url(database.url), 3);
    expect(await saidOf(db)).toEqual([]);
    expect(await Promise.all([isPooledByTransaction(db), isPooledByTransaction(db)])).toEqual([false, false]);
  });

  test('nor on a client whose connections come and go', async () => {
    const client = postgres(pgBouncer.url(database.url), {
      max: 2,
      max_lifetime: 0.001,
      idle_timeout: 0.001,
    });
    onTestFinished(() => client.end({ timeout: 1 }));
    const db = drizzle({ client });
    for (let times = 0; times < 10; times++) expect(await isPooledByTransaction(db)).toBe(false);
  });
});
