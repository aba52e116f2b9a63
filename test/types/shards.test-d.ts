import { defineJob, type HandlerContext, handle, type Queue, type Worker } from 'drizzle-queue';
import { createDashboard } from 'drizzle-queue/dashboard';
import {
  createWorkers,
  type ShardEvent,
  type ShardKey,
  shardOf,
  type WorkersHealth,
} from 'drizzle-queue/shards';
import { describe, expectTypeOf, test } from 'vitest';
import { z } from 'zod';
import { nodePostgres, postgresJs } from './databases.ts';

declare const queue: Queue;
const send = defineJob('send', { payload: z.object({ to: z.string() }) });
const sync = defineJob('sync');
const handlers = [handle(send, async () => {}), handle(sync, async () => {})];
const shards = { eu: { db: postgresJs, queue }, us: { db: postgresJs, queue } };

describe('shardOf', () => {
  test('gives what the shard has, and its name', () => {
    const shard = shardOf(shards, 7);
    expectTypeOf(shard.name).toEqualTypeOf<'eu' | 'us'>();
    expectTypeOf(shard.db).toEqualTypeOf<typeof postgresJs>();
    expectTypeOf(shard.queue).toEqualTypeOf<Queue>();
    expectTypeOf(shardOf({} as Record<string, { region: number }>, 'key').region).toEqualTypeOf<number>();
  });

  test('takes texts, numbers and bigints', () => {
    expectTypeOf<ShardKey>().toEqualTypeOf<string | number | bigint>();
    // @ts-expect-error what may be missing is no key
    shardOf(shards, undefined);
    // @ts-expect-error shards have names
    shardOf([shards.eu, shards.us], {});
  });
});

describe('createWorkers', () => {
  const workers = createWorkers(shards, { handlers, jobs: [send, sync] });

  test('knows the names of the shards', () => {
    expectTypeOf(workers.byShard).toEqualTypeOf<Readonly<Record<'eu' | 'us', Worker>>>();
    expectTypeOf(workers.health()).toEqualTypeOf<WorkersHealth<'eu' | 'us'>>();
    workers.on('completed', ({ shard, job, durationMs }) => {
      expectTypeOf(shard).toEqualTypeOf<'eu' | 'us'>();
      expectTypeOf(job.id).toEqualTypeOf<number>();
      expectTypeOf(durationMs).toEqualTypeOf<number>();
    });
    workers.on('stopped', (told) => expectTypeOf(told.shard).toEqualTypeOf<'eu' | 'us'>());
    expectTypeOf<ShardEvent<'listening', 'eu'>['shard']>().toEqualTypeOf<'eu'>();
    createWorkers(shards, { handlers, each: (shard) => ({ listen: shard === 'eu', log: console }) });
    // @ts-expect-error a name that is none
    createWorkers(shards, { handlers, each: (shard) => ({ listen: shard === 'asia' }) });
  });

  test('takes the same handlers and settings as createWorker', () => {
    // @ts-expect-error a kind without a handler
    createWorkers(shards, { handlers: [handle(send, async () => {})], jobs: [send, sync] });
    // @ts-expect-error a logger for all of them would not say which
    createWorkers(shards, { handlers, log: console });
    // @ts-expect-error each shard has its queue
    createWorkers(shards, { handlers, queue });
    // @ts-expect-error an option that does not exist
    createWorkers(shards, { handlers, concurrancy: 5 });
  });

  test('takes handlers for the type of its databases, and none for another', () => {
    const own = handle(send, async (_: HandlerContext<typeof send, typeof postgresJs>) => {});
    createWorkers(shards, { handlers: [own] });
    // @ts-expect-error handlers for postgres.js, and databases of node-postgres
    createWorkers({ eu: { db: nodePostgres, queue } }, { handlers: [own] });
    // @ts-expect-error databases of two drivers have no type in common
    createWorkers({ eu: { db: nodePostgres, queue }, us: { db: postgresJs, queue } }, { handlers: [own] });
  });
});

test('a dashboard takes the same shards', () => {
  createDashboard({ queues: shards, authorize: () => 'read' });
});
