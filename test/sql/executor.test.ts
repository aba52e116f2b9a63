import { sql } from 'drizzle-orm';
import { createQueue, defineJob } from 'drizzle-queue';
import { afterEach, expect, test } from 'vitest';
import { queryRows, rowsOf, sqlStateOf } from '../../src/core/sql/executor.ts';
import { isLoss } from '../../src/core/sql/is-loss.ts';
import { tables } from '../queries/support/jobs.ts';
import { useTestDatabase } from '../support/test-database.ts';

const database = useTestDatabase();
const queue = createQueue();
const work = defineJob('work');

afterEach(async () => {
  await database.client`drop function if exists audit() cascade`;
});

test('a column that a function of the app lacks is no missing migration', async () => {
  await database.client.unsafe(`
    create function audit() returns trigger language plpgsql as 'begin perform new.nosuch; return new; end';
    create trigger audit before insert on queue_jobs for each row execute function audit()`);
  const refused = await queue.enqueue(database.db, work).catch((error: unknown) => error);
  expect(refused).toMatchObject({ cause: { message: 'record "new" has no field "nosuch"' } });
  expect(sqlStateOf(refused)).toBe('42703');
  expect(refused).not.toMatchObject({ name: 'MissingMigrationError' });
});

test('nor is a column that such a function looks for in a table of the queue', async () => {
  await database.client.unsafe(`
    create function audit() returns trigger language plpgsql as
      'begin update queue_jobs set nosuch = 1; return new; end';
    create trigger audit before insert on queue_jobs for each row execute function audit()`);
  const refused = await queue.enqueue(database.db, work).catch((error: unknown) => error);
  expect(refused).toMatchObject({
    cause: { message: 'column "nosuch" of relation "queue_jobs" does not exist' },
  });
  expect(refused).not.toMatchObject({ name: 'MissingMigrationError' });
});

test('nor is what such a function lacks where the server speaks another language', async () => {
  const refused = Object.assign(new Error('Spalte »nosuch« existiert nicht'), {
    code: '42703',
    where: 'PL/pgSQL-Funktion audit() Zeile 1 bei PERFORM',
  });
  const failing = { execute: () => Promise.reject(refused) };
  await expect(queryRows(failing, tables, sql`select 1`)).rejects.toBe(refused);
});

test('rows are read from what each driver answers', () => {
  const rows = [{ id: 1 }];
  expect(rowsOf(rows)).toBe(rows);
  expect(rowsOf({ rows })).toBe(rows);
  // Drizzle on Xata over HTTP hands out the answer of its client.
  expect(rowsOf({ records: rows, columns: [], warning: undefined })).toBe(rows);
  expect(rowsOf(undefined)).toBeUndefined();
});

test('an error that is its own cause has no SQLSTATE, and is looked through once', () => {
  const error = new Error('the app went wrong');
  error.cause = error;
  expect(sqlStateOf(error)).toBeUndefined();
  expect(isLoss(error)).toBe(true);
});

test.each([
  ['a row', '40001', {}, '40001'],
  ['the app', 'P0001', {}, 'P0001'],
  ['the app, five letters that begin with E', 'EDENY', {}, 'EDENY'],
  ['a socket', 'EPIPE', { errno: -32, syscall: 'write' }, undefined],
  ['a socket without a number', 'EBADF', { syscall: 'read' }, undefined],
  ['the app, as one of Prisma has it', 'P2001', {}, 'P2001'],
  ['a connection of Prisma', 'P1017', { clientVersion: '6.0.0' }, undefined],
  ['a raw query of Prisma', 'P2010', { clientVersion: '6.0.0', meta: { code: '40001' } }, '40001'],
  ["a raw query of Prisma over a driver's adapter", 'P2010', { clientVersion: '7.0.0', meta: {} }, 'P2010'],
  [
    'a connection of Prisma over an adapter',
    'P2010',
    { clientVersion: '7.0.0', meta: { driverAdapterError: { cause: { kind: 'ConnectionClosed' } } } },
    undefined,
  ],
  [
    'a raw query of Prisma over an adapter that says more',
    'P2010',
    { clientVersion: '7.0.0', meta: { driverAdapterError: { cause: { originalCode: '57P01' } } } },
    '57P01',
  ],
  ["Prisma's pool", 'P2024', { clientVersion: '6.0.0', meta: { timeout: 10 } }, undefined],
  ['a deadlock that Prisma has told apart', 'P2034', { clientVersion: '6.0.0' }, undefined],
])('an error of %s with the code %s and %o has the SQLSTATE %s', (_, code, beside, sqlState) => {
  expect(sqlStateOf(Object.assign(new Error('write failed'), { code, ...beside }))).toBe(sqlState);
});
