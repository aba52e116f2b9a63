import { drizzle } from 'drizzle-orm/node-postgres';
import { drizzle as onPostgresJs } from 'drizzle-orm/postgres-js';
import pg from 'pg';
import postgres from 'postgres';
import { expect, onTestFinished, test } from 'vitest';
import { listenOf } from '../../src/core/drivers/detect.ts';
import { listenByPostgresJs } from '../../src/core/drivers/listen-postgres-js.ts';
import { TcpProxy } from '../faults/tcp-proxy.ts';
import { useTestDatabase } from '../support/test-database.ts';

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
  await expect.poll(() => heard).toEqual(['a job']);
  expect(reported).toEqual([]);
}, 60_000);
