import { drizzle } from 'drizzle-orm/postgres-js';
import { createQueue, defineJob, handle, unvalidated } from 'drizzle-queue';
import { createWorkers } from 'drizzle-queue/shards';
import postgres from 'postgres';
import { expect, inject, onTestFinished, test } from 'vitest';
import { sqlStateOf } from '../../src/core/sql/executor.ts';
import { createDatabase } from '../support/databases.ts';
import { createTestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';

const note = defineJob('note', { payload: unvalidated<{ n: number }>() });

test('one of four databases is dropped: the others work on, health says which, and it is used again when it is back', {
  timeout: 180_000,
}, async () => {
  const { url: serverUrl, template } = inject('testServer');
  const databases = await Promise.all(Array.from({ length: 4 }, () => createTestDatabase()));
  const shards = Object.fromEntries(
    databases.map(({ url }, n) => {
      // As docs/workers.md says: otherwise postgres.js waits up to 20 seconds before it connects again.
      const client = postgres(url, { max: 4, fetch_types: false, backoff: () => 1, onnotice: () => {} });
      return [`shard-${n}`, { db: drizzle({ client }), queue: createQueue() }];
    }),
  );
  const ran = new Map<string, number>();
  const workers = createWorkers(shards, { log: false, handlers: [handle(note, () => undefined)] });
  workers.on('error', () => undefined);
  workers.on('completed', ({ shard }) => ran.set(shard, (ran.get(shard) ?? 0) + 1));
  onTestFinished(async () => {
    await workers.stop();
    await Promise.all(Object.values(shards).map(({ db }) => db.$client.end({ timeout: 1 })));
    await Promise.all(databases.map((database) => database.drop()));
  });
  await workers.start();

  const [first] = databases;
  await first?.drop();
  let rounds = 0;
  await until(async () => {
    rounds++;
    for (const [name, { db, queue }] of Object.entries(shards)) {
      if (name !== 'shard-0') await queue.enqueue(db, note, { n: rounds });
    }
    await until(() => ['shard-1', 'shard-2', 'shard-3'].every((name) => ran.get(name) === rounds));
    return workers.health().shards['shard-0']?.ready === false;
  });
  const health = workers.health();
  expect(health).toMatchObject({ live: true, ready: true });
  expect(health.reasons.length).toBeGreaterThan(0);
  for (const reason of health.reasons) expect(reason).toMatch(/^shard-0: /);

  await createDatabase(serverUrl, { name: first?.name ?? '', template });
  const again = shards['shard-0'];
  if (again === undefined) throw new Error('there are four');
  await until(() => workers.health().shards['shard-0']?.ready);
  // A connection of the pool that began to open before the database was back may refuse what it is given.
  await until(async () => {
    try {
      return await again.queue.enqueue(again.db, note, { n: 0 });
    } catch (error) {
      if (sqlStateOf(error) === '3D000') return undefined;
      throw error;
    }
  });
  await until(() => ran.get('shard-0') === 1);
  expect(workers.health()).toMatchObject({ ready: true, reasons: [] });
});
