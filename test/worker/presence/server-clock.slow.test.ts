import { drizzle } from 'drizzle-orm/node-postgres';
import type { Database } from 'drizzle-queue';
import pg from 'pg';
import { beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { gate } from '../../support/gate.ts';
import { nextEvent } from '../next-event.ts';
import { database, queue, sleep, startWorker, untilSeen, useObservedWorkers } from './observed-workers.ts';

useObservedWorkers();

const CLOCKS = ['now', 'statement_timestamp', 'clock_timestamp', 'transaction_timestamp'];

/** A clock for the server that can be set: its functions are found before those of `pg_catalog`. */
beforeAll(async () => {
  await database.client`create schema clock`;
  await database.client`create table clock.step as select interval '0' as by`;
  for (const name of CLOCKS) {
    await database.client.unsafe(`
      create function clock.${name}() returns timestamptz stable language sql
      as 'select pg_catalog.${name}() + (select s.by from clock.step as s)'`);
  }
});
beforeEach(() => database.client`update clock.step set by = '0'`);

function openPool(): Database {
  const options = '-c search_path=clock,public,pg_catalog';
  const pool = new pg.Pool({ connectionString: database.url, options, max: 4 });
  pool.on('error', () => {});
  onTestFinished(() => pool.end());
  return drizzle({ client: pool }) as unknown as Database;
}

describe.each([
  ['with sessions', true],
  ['without sessions', false],
] as const)('workers %s', (_, listen) => {
  test('no worker is declared gone when the clock of the server is set ahead', () => isNoDeath(listen));
});

async function isNoDeath(listen: boolean): Promise<void> {
  const held = gate();
  const attempts: number[] = [];
  const run = (attempt: number) => {
    attempts.push(attempt);
    return held.opened;
  };
  const workers = [];
  for (let number = 0; number < 3; number++)
    workers.push(await startWorker(run, { db: openPool(), listen, concurrency: 2 }));
  const claimed = Promise.race(workers.map(({ worker }) => nextEvent(worker, 'claimed')));
  const { id } = await queue.enqueue(database.db, sleep);
  await claimed;
  await Promise.all(workers.map((worker) => untilSeen(worker.id)));
  await database.client`update clock.step set by = '10 minutes'`;
  await Promise.all(workers.map((worker) => untilSeen(worker.id, 2)));
  expect(workers.flatMap(({ gone }) => gone)).toEqual([]);
  held.open();
  await Promise.all(workers.map(({ worker }) => worker.stop()));
  expect(await queue.find(database.db, id)).toMatchObject({ state: 'completed', attempt: 1 });
  expect(attempts).toEqual([1]);
}
