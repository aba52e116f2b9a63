import { PGlite } from '@electric-sql/pglite';
import { sql } from 'drizzle-orm';
import { afterAll, beforeEach, expect, test } from 'vitest';
import { Connection, drizzleOn } from '../../site/live/connection.ts';
import { ServedConnection } from '../../site/live/served-connection.ts';

const database = PGlite.create();
const ports: MessagePort[] = [];

/** A connection, and its end at the database. */
function connect() {
  const { port1, port2 } = new MessageChannel();
  ports.push(port1, port2);
  const served = new ServedConnection(database, port1);
  const connection = new Connection(port2);
  return { served, connection, db: drizzleOn(connection) };
}

const count = async (): Promise<unknown> =>
  (await (await database).query('select count(*)::int as n from notes')).rows[0];

beforeEach(async () => {
  await (await database).exec('drop table if exists notes; create table notes (n int unique)');
});

afterAll(async () => {
  for (const port of ports) port.close();
  await (await database).close();
});

test('a transaction commits, or rolls back with the error of its function', async () => {
  const { db } = connect();
  await db.transaction((tx) => tx.execute(sql`insert into notes values (1)`));
  const failed = db.transaction(async (tx) => {
    await tx.execute(sql`insert into notes values (2)`);
    throw new RangeError('no');
  });
  await expect(failed).rejects.toThrow(new RangeError('no'));
  expect(await count()).toEqual({ n: 1 });
});

test('an error keeps its SQLSTATE on the way', async () => {
  const { db } = connect();
  await db.execute(sql`insert into notes values (1)`);
  const again = db.execute(sql`insert into notes values (1)`);
  await expect(again).rejects.toMatchObject({ cause: { code: '23505' } });
});

test('what was open on a connection that breaks is rolled back before another runs a statement', async () => {
  const broken = connect();
  const other = connect();
  let opened: () => void = () => undefined;
  const open = new Promise<void>((resolve) => {
    opened = resolve;
  });
  // It never ends: its process is killed.
  void broken.db.transaction(async (tx) => {
    await tx.execute(sql`insert into notes values (1)`);
    opened();
    await new Promise(() => undefined);
  });
  await open;
  // It waits for the only session of PGlite.
  const inserted = other.db.execute(sql`insert into notes values (2)`);
  broken.served.break();
  await inserted;
  expect(await count()).toEqual({ n: 1 });
  expect((await other.db.execute(sql`select n from notes`)).rows).toEqual([{ n: 2 }]);
});

test('a notification reaches who listens, and nobody whose connection broke', async () => {
  const broken = connect();
  const other = connect();
  const heard: string[] = [];
  await broken.connection.listen('news', (payload) => heard.push(`broken: ${payload}`));
  const first = new Promise<void>((resolve) => {
    void other.connection.listen('news', (payload) => {
      heard.push(payload);
      resolve();
    });
  });
  // Answered after the `listen` before it.
  await other.db.execute(sql`select 1`);
  broken.served.break();
  await other.db.execute(sql`select pg_notify('news', 'one')`);
  await first;
  expect(heard).toEqual(['one']);
});
