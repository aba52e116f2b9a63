import { sql } from 'drizzle-orm';
import { drizzle } from 'drizzle-orm/node-postgres';
import pg from 'pg';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { Transaction } from '../../src/core/sql/executor.ts';
import { transact } from '../../src/core/sql/transact.ts';
import { TcpProxy } from '../faults/tcp-proxy.ts';
import { rowsOf } from '../integration/behaviours/behaviour.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';

const database = useTestDatabase();

/** As an app has it that has read nothing of errors of connections. */
function poolTo(url: string) {
  const pool = new pg.Pool({ connectionString: url, max: 1 });
  pool.on('error', () => {});
  onTestFinished(() => pool.end());
  return { pool, db: drizzle({ client: pool }) };
}

test('a BEGIN whose connection breaks leaves the pool as large as it was', async () => {
  const proxy = await TcpProxy.start(Number(new URL(database.url).port));
  onTestFinished(() => proxy.close());
  const { pool, db } = poolTo(proxy.url(database.url));
  let ran = 0;
  const one = () =>
    transact(db, async (tx) => {
      ran++;
      return rowsOf(await tx.execute(sql`select 1 as one`));
    });
  proxy.cuts = { statement: /begin/, share: 1, commitShare: 0, holdMs: 0 };
  for (let cut = 0; cut < 3; cut++) await expect(one()).rejects.toThrow();
  expect([proxy.lostAnswers, ran, pool.totalCount]).toEqual([3, 0, 0]);

  proxy.cuts = undefined;
  expect(await one()).toEqual([{ one: 1 }]);
  expect([ran, pool.totalCount, pool.idleCount]).toEqual([1, 1, 1]);
});

test('a connection that breaks in a transaction rejects it, and does not end the process', async () => {
  const { pool, db } = poolTo(database.url);
  const broken = transact(db, async (tx) => {
    const [{ pid }] = rowsOf(await tx.execute(sql`select pg_backend_pid() as pid`)) as [{ pid: number }];
    const [client] = Reflect.get(pool, '_clients') as pg.Client[];
    const ended = new Promise((resolve) => client?.once('end', resolve));
    await database.client`select pg_terminate_backend(${pid})`;
    await ended;
    await tx.execute(sql`select 1`);
  });
  await expect(broken).rejects.toThrow();
  expect(await transact(db, async () => 'again')).toBe('again');
});

describe('what broke a connection is what a transaction rejects with', () => {
  /** Ends the connection of a transaction as an administrator does, and waits until the driver knows. */
  async function terminate(tx: Transaction): Promise<void> {
    const [{ pid }] = rowsOf(await tx.execute(sql`select pg_backend_pid() as pid`)) as [{ pid: number }];
    await database.client`select pg_terminate_backend(${pid}, 10000)`;
    const works = async () => await tx.execute(sql`select 1`);
    await until(async () =>
      works().then(
        () => false,
        () => true,
      ),
    );
  }
  // As the driver is told of it in a statement, or between two.
  const broken = /terminating connection due to administrator command|Connection terminated unexpectedly/;

  describe.each(['a pool', 'a client'])('%s', (what) => {
    const open = async () => {
      if (what === 'a pool') return poolTo(database.url).db;
      const client = new pg.Client({ connectionString: database.url });
      await client.connect();
      onTestFinished(() => client.end());
      return drizzle({ client });
    };

    test('at the next statement', async () => {
      const breaking = transact(await open(), async (tx) => {
        await terminate(tx);
        await tx.execute(sql`select 1`);
      });
      await expect(breaking).rejects.toThrow(broken);
    });

    test('in a statement', async () => {
      const breaking = transact(await open(), async (tx) => {
        const [{ pid }] = rowsOf(await tx.execute(sql`select pg_backend_pid() as pid`)) as [{ pid: number }];
        const sleeping = (async () => await tx.execute(sql`select pg_sleep(60)`))();
        sleeping.catch(() => undefined);
        await until(
          async () =>
            (await database.client`select from pg_stat_activity where pid = ${pid} and state = 'active'`)
              .length > 0,
        );
        await database.client`select pg_terminate_backend(${pid}, 10000)`;
        await sleeping;
      });
      await expect(breaking).rejects.toMatchObject({ cause: { code: '57P01' } });
    });

    test('at the commit', async () => {
      await expect(transact(await open(), terminate)).rejects.toThrow(broken);
    });

    test('in a savepoint', async () => {
      const breaking = transact(await open(), async (tx) => {
        await tx.transaction(terminate);
      });
      await expect(breaking).rejects.toThrow(broken);
    });

    test('but for what the function itself throws', async () => {
      const breaking = transact(await open(), async (tx) => {
        await terminate(tx);
        throw new Error('on purpose');
      });
      await expect(breaking).rejects.toThrow('on purpose');
    });
  });
});

test('a transaction commits, rolls back and has savepoints as without it, and leaves no listener behind', async () => {
  const { pool, db } = poolTo(database.url);
  const listeners = () => (Reflect.get(pool, '_clients') as pg.Client[])[0]?.listenerCount('error');
  await db.execute(sql`create table notes (text text)`);
  const before = listeners();
  const write = (text: string) => sql`insert into notes values (${text})`;
  await transact(db, async (tx) => {
    await tx.execute(write('committed'));
    const undone = transact(tx, async (savepoint) => {
      await savepoint.execute(write('in a savepoint'));
      throw new Error('undo');
    });
    await expect(undone).rejects.toThrow('undo');
  });
  const rolledBack = transact(db, async (tx) => {
    await tx.execute(write('rolled back'));
    throw new Error('roll back');
  });
  await expect(rolledBack).rejects.toThrow('roll back');
  expect(rowsOf(await db.execute(sql`select text from notes`))).toEqual([{ text: 'committed' }]);
  expect([pool.totalCount, pool.idleCount, listeners()]).toEqual([1, 1, before]);
});

test('what runs after a transaction that the driver gave up is in no transaction', async () => {
  const pool = new pg.Pool({ connectionString: database.url, max: 1, query_timeout: 300 });
  pool.on('error', () => {});
  onTestFinished(() => pool.end());
  const db = drizzle({ client: pool });
  await database.client`create table kept (text text)`;
  await database.client`create function is_over() returns bool language sql as 'select pg_try_advisory_lock(4711)'`;
  const slow = transact(db, async (tx) => {
    await tx.execute(sql`select pg_advisory_xact_lock(4711), pg_sleep(1)`);
  });
  await expect(slow).rejects.toThrow();
  // The server may still be at it.
  await until(async () => rowsOf(await database.db.execute(sql`select is_over() as over`))[0]?.over === true);
  await db.execute(sql`insert into kept values ('kept')`);
  expect([...(await database.client`select text from kept`)]).toEqual([{ text: 'kept' }]);
});

test('a pool of another copy of the driver, whatever it is called', async () => {
  const OtherPool: typeof pg.Pool = Object.getPrototypeOf(pg.Pool);
  class Connections extends OtherPool {}
  const pool: pg.Pool = Reflect.construct(Connections, [
    { connectionString: database.url, max: 1 },
    pg.Client,
  ]);
  pool.on('error', () => {});
  onTestFinished(() => pool.end());
  const db = drizzle({ client: pool });
  await database.client`create table noted (text text)`;
  const failing = transact(db, async (tx) => {
    await tx.execute(sql`insert into noted values ('rolled back')`);
    throw new Error('roll back');
  });
  await expect(failing).rejects.toThrow('roll back');
  expect([...(await database.client`select text from noted`)]).toEqual([]);
});
