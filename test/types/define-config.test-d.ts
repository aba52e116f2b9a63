import { drizzle } from 'drizzle-orm/postgres-js';
import { createQueue, defineJob, handle } from 'drizzle-queue';
import { defineConfig } from 'drizzle-queue/config';
import postgres from 'postgres';
import { test } from 'vitest';

const db = drizzle({ client: postgres() });
const queue = createQueue();
const greet = defineJob('greet');
const handlers = [handle(greet, () => undefined)];

test('defineConfig takes handlers, or a function that loads them, and options of the worker', () => {
  defineConfig({ db, queue, jobs: [greet], handlers });
  defineConfig({ db, queue, handlers: () => handlers });
  defineConfig({ db, queue, handlers: async () => handlers, worker: { concurrency: 20, schedules: [] } });
  defineConfig({ db, queue, dashboard: { title: 'Shop' } });
});

test('defineConfig takes several databases in place of one', () => {
  const shards = { eu: { db, queue }, us: { db, queue: createQueue() } };
  defineConfig({ shards, jobs: [greet], handlers });
  defineConfig({
    shards,
    handlers,
    worker: { concurrency: 20, each: (shard) => ({ listen: shard === 'eu' }) },
  });
  // @ts-expect-error both
  defineConfig({ shards, db, queue, handlers });
  // @ts-expect-error settings of each are those of several
  defineConfig({ db, queue, worker: { each: () => ({}) } });
});

test('defineConfig takes nothing else', () => {
  // @ts-expect-error a queue is needed
  defineConfig({ db });
  // @ts-expect-error there is no such option
  defineConfig({ db, queue, handler: handlers });
  // @ts-expect-error the queue is that of the config
  defineConfig({ db, queue, worker: { queue } });
});
