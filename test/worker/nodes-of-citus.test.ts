import { drizzle } from 'drizzle-orm/postgres-js';
import { createQueue, createWorker, defineJob, handle, QueueError } from 'drizzle-queue';
import postgres from 'postgres';
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { AS_ON_CITUS } from '../support/citus.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';
import { nextEvent } from './next-event.ts';

const database = useTestDatabase({ max: 4 });
const queue = createQueue();
const work = defineJob('work');
const handlers = [handle(work, () => {})];

beforeAll(async () => {
  await database.client.begin((tx) => tx.unsafe(AS_ON_CITUS));
});

const registered = async () => (await database.client`select from queue_workers`).length;

test('a worker that listens asks as often as one that polls, since a notification stays on its node', async () => {
  const statements: string[] = [];
  const client = postgres(database.url, { max: 4, debug: (_, text) => statements.push(text) });
  const worker = createWorker(drizzle({ client }), { queue, handlers });
  onTestFinished(async () => {
    await worker.stop();
    await client.end();
  });
  const listening = nextEvent(worker, 'listening');
  const idle = nextEvent(worker, 'idle');
  await worker.start();
  await Promise.all([listening, idle]);
  const from = statements.length;
  const sent = (word: string) => statements.slice(from).filter((text) => text.includes(word)).length;
  await until(() => sent('due_at') >= 40 && sent('queue_pauses') >= 6);
  // It checks the workers every second and a half. By then one that trusts notifications has looked twice.
  expect(sent('pg_postmaster_start_time')).toBeLessThan(12);
});

test('a row that a transaction of the app has locked holds up no other, though no wait can be brief there', async () => {
  let release = () => {};
  const released = new Promise<void>((resolve) => {
    release = resolve;
  });
  let running = 0;
  const held = defineJob('held', { queue: 'held', maxAttempts: 1 });
  const worker = createWorker(database.db, {
    queue,
    queues: { held: { concurrency: 1 } },
    handlers: [
      handle(held, async () => {
        running++;
        await released;
      }),
    ],
  });
  onTestFinished(() => worker.stop());
  const stateOf = async (id: number) => (await queue.find(database.db, id))?.state;
  const [first = 0, ...others] = (await queue.enqueueMany(database.db, held, [{}, {}, {}])).map(
    ({ id }) => id,
  );
  await worker.start();
  await until(() => running === 1);
  await database.client.begin(async (tx) => {
    await tx`select from queue_jobs where queue = 'held' and id = ${first} for update`;
    release();
    for (const id of others) await until(async () => (await stateOf(id)) === 'completed');
    expect(await stateOf(first)).toBe('running');
  });
  await until(async () => (await stateOf(first)) === 'completed');
});

describe('a worker does not start, and says why,', () => {
  test('while a node is down, because it cannot register', async () => {
    const message = 'connection to the remote node postgres@node2:5432 failed';
    await database.client.unsafe(`
      create function refuse() returns trigger language plpgsql as
        $$ begin raise exception '${message}' using errcode = 'connection_failure'; end $$`);
    await database.client`create trigger refuse before insert on queue_workers execute function refuse()`;
    const worker = createWorker(database.db, { queue, handlers });
    onTestFinished(() => worker.stop());
    const refused = worker.start();
    await expect(refused).rejects.toThrow(QueueError);
    await expect(refused).rejects.toThrow(
      `The worker cannot register while a node of the Citus cluster is down (${message}): ` +
        'Citus writes queue_workers on all nodes. Start the worker again once all nodes are up',
    );
    await database.client`drop trigger refuse on queue_workers`;
    // The same worker can be started once they are.
    await worker.start();
    expect(await registered()).toBe(1);
  });

  test('through a node whose ids JavaScript cannot hold; and no job is enqueued there', async () => {
    const first = String(32n * 2n ** 48n + 1n);
    await database.client.unsafe(`
      alter sequence queue_jobs_id_seq minvalue ${first} start ${first} restart`);
    const worker = createWorker(database.db, { queue, handlers });
    await expect(worker.start()).rejects.toThrow(
      'The worker cannot work through this node of the Citus cluster: JavaScript numbers are exact up to 2^53',
    );
    expect(await registered()).toBe(0);
    const enqueues = [
      () => database.db.transaction((tx) => queue.enqueue(tx, work)),
      () => database.db.transaction((tx) => queue.enqueueMany(tx, work, [{}, {}])),
      () =>
        database.db.transaction((tx) =>
          queue.enqueue(tx, work, undefined, { debounce: { key: 'k', delayMs: 1_000 } }),
        ),
    ];
    for (const enqueue of enqueues) {
      await expect(enqueue()).rejects.toThrow(
        /The new job has the id 90071\d+: .* Enqueue through the coordinator/,
      );
    }
    expect(await database.client`select from queue_jobs`).toHaveLength(0);
  });
});
