import { drizzle } from 'drizzle-orm/node-postgres';
import { drizzle as onPostgresJs } from 'drizzle-orm/postgres-js';
import pg from 'pg';
import postgres from 'postgres';
import { expect, onTestFinished, test } from 'vitest';
import { listenOf } from '../../src/core/drivers/detect.ts';
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
