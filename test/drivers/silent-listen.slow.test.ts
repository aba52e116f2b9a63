import { sql } from 'drizzle-orm';
import { drizzle } from 'drizzle-orm/node-postgres';
import { drizzle as onPostgresJs } from 'drizzle-orm/postgres-js';
import pg from 'pg';
import postgres from 'postgres';
import { expect, onTestFinished, test } from 'vitest';
import { listenApartOf, listenOf } from '../../src/core/drivers/detect.ts';
import { listenByPostgresJs } from '../../src/core/drivers/listen-postgres-js.ts';
import { openBeside } from '../../src/core/worker/statements/own-connection.ts';
import { TcpProxy } from '../faults/tcp-proxy.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';

const database = useTestDatabase();

test('node-postgres: a connection that falls silent before LISTEN is answered is given up after 10 s', async () => {
  const proxy = await TcpProxy.start(Number(new URL(database.url).port));
  const pool = new pg.Pool({ connectionString: proxy.url(database.url) });
  pool.on('error', () => undefined);
  // The pool's event is told of the client that listens as well, once it is connected.
  pool.on('connect', () => proxy.forget('to the client', 'all'));
  const over = new AbortController();
  onTestFinished(async () => {
    over.abort();
    await proxy.close();
    await pool.end();
  });
  let ready = 0;
  const listening = listenOf(drizzle({ client: pool }))?.(
    'a_channel',
    { ready: () => ready++, notify: () => undefined },
    over.signal,
  );
  await expect(listening).rejects.toThrow('has not answered LISTEN within 10 s');
  expect(ready).toBe(0);
});

test('postgres.js: the same, after 10 s more than it may take to connect', async () => {
  const proxy = await TcpProxy.start(Number(new URL(database.url).port));
  const client = postgres(proxy.url(database.url), {
    connect_timeout: 2,
    // The server reports its parameters just before it is ready for LISTEN.
    onparameter: () => proxy.forget('to the client', 'all'),
  });
  const over = new AbortController();
  onTestFinished(async () => {
    over.abort();
    await proxy.close();
    await client.end({ timeout: 0 });
  });
  let ready = 0;
  const listening = listenOf(onPostgresJs({ client }))?.(
    'a_channel',
    { ready: () => ready++, notify: () => undefined },
    over.signal,
  );
  await expect(listening).rejects.toThrow('has not answered LISTEN within 12 s');
  expect(ready).toBe(0);
});

test('a driver that answers LISTEN after it was given up, and cannot be closed, reports nothing', async () => {
  const proxy = await TcpProxy.start(Number(new URL(database.url).port));
  const client = postgres(proxy.url(database.url));
  const over = new AbortController();
  onTestFinished(async () => {
    over.abort();
    await proxy.close();
    await client.end({ timeout: 0 });
  });
  await client.listen('another_channel', () => undefined);
  proxy.withhold();
  const reported: string[] = [];
  const events = { ready: () => reported.push('ready'), notify: (payload: string) => reported.push(payload) };
  // As of Bun's SQL, nothing is known of the connection that it listens on.
  const listen = listenByPostgresJs({ listen: (...given) => client.listen(...given) });
  await Promise.all(
    [1, 2].map(() =>
      expect(listen('a_channel', events, over.signal)).rejects.toThrow('answered LISTEN within 40 s'),
    ),
  );
  const heard: string[] = [];
  const again = client.listen('a_channel', (payload) => heard.push(payload));
  proxy.letThrough();
  await again;
  await client.notify('a_channel', 'a job');
  await until(() => heard.length > 0);
  expect(heard).toEqual(['a job']);
  expect(reported).toEqual([]);
});

test('postgres.js: a connection beside the pool is not the one that listens, which may be silent', async () => {
  const proxy = await TcpProxy.start(Number(new URL(database.url).port));
  const client = postgres(proxy.url(database.url), { fetch_types: false });
  const db = onPostgresJs({ client });
  const over = new AbortController();
  onTestFinished(async () => {
    over.abort();
    await proxy.close();
    await client.end({ timeout: 0 });
  });
  const [heard, ready]: [string[], unknown[]] = [[], []];
  const listen = (channel: string) =>
    listenOf(db)?.(
      channel,
      { ready: () => ready.push(channel), notify: (payload) => heard.push(payload) },
      over.signal,
    );
  const listening = listen('a_channel');
  await client.listen('own', (payload) => heard.push(payload));
  await until(() => ready.length > 0);
  expect(ready).toEqual(['a_channel']);
  const opening = openBeside(listenApartOf(db) ?? expect.fail());
  const { runner, signal } = await opening.opened;
  const spares = async () =>
    await database.client<{ pid: number }[]>`
      select pid from pg_stat_activity where datname = current_database() and query like 'select pg_backend_pid() as spare%'`;
  await runner.execute(sql`select pg_backend_pid() as spare`);
  const [{ pid } = { pid: 0 }] = await spares();
  expect(pid).toBeGreaterThan(0);
  // It hears nothing for the others, and its end is not theirs.
  await client.notify('own', 'once');
  await until(() => heard.length > 0);
  expect(heard).toEqual(['once']);
  opening.close();
  await until(async () => (await spares()).length === 0);
  expect(signal.aborted).toBe(true);
  await client.notify('own', 'still');
  await until(() => heard.length > 1);
  expect(heard).toEqual(['once', 'still']);
  await database.client`select pg_notify('a_channel', 'too')`;
  await until(() => heard.length > 2);
  expect(heard).toEqual(['once', 'still', 'too']);
  // Also where that one is silent, which it need not know yet.
  proxy.forget('to the client', 'all');
  const next = openBeside(listenApartOf(db) ?? expect.fail());
  const own = await next.opened;
  await own.runner.execute(sql`select pg_backend_pid() as spare`);
  const [{ pid: nextPid } = { pid: 0 }] = await spares();
  // One that breaks is lost for its user alone.
  await database.client`select pg_terminate_backend(${nextPid})`;
  await until(() => own.signal.aborted);
  expect(ready).toEqual(['a_channel']);
  over.abort();
  await listening;
});
