import { setTimeout as delay } from 'node:timers/promises';
import { eq } from 'drizzle-orm';
import { drizzle } from 'drizzle-orm/postgres-js';
import {
  createQueue,
  createWorker,
  type Database,
  defineJob,
  type Handler,
  handle,
  limitsIn,
  type Queue,
} from 'drizzle-queue';
import { queueJobs } from 'drizzle-queue/schema';
import * as control from 'drizzle-queue/schema/control';
import postgres from 'postgres';
import { afterEach, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { addControlTables } from '../support/control-tables.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';

const database = useTestDatabase({ max: 10 });
beforeAll(() => addControlTables(database));
const workers: { stop(): Promise<void> }[] = [];
let isOver = false;
beforeEach(() => {
  isOver = false;
});
afterEach(async () => {
  isOver = true;
  await Promise.all(workers.splice(0).map((worker) => worker.stop()));
  await database.client.unsafe(`
    delete from queue_jobs; delete from queue_results; delete from queue_groups; delete from queue_notes;
    delete from queue_holds; delete from queue_limits; delete from queue_usage`);
});

type Limits = Parameters<typeof limitsIn>[1][string];

const newsletter = defineJob('newsletter', { queue: 'mail' });
const receipt = defineJob('receipt', { queue: 'mail' });
const RECEIPTS = 20;
const HOUR_MS = 3_600_000;

const limited = (mail: Limits) => createQueue({ limits: limitsIn(control, { mail }) });

async function started(queue: Queue, handlers: readonly Handler[], db: Database = database.db) {
  let claims = 0;
  const worker = createWorker(db, { queue, handlers, queues: { mail: { concurrency: 10 } } });
  worker.on('claimed', () => claims++);
  workers.push(worker);
  await worker.start();
  return { claims: () => claims };
}

/** A newsletter waits for the end of the test. */
async function waiting(): Promise<void> {
  await until(() => isOver);
}

/** Waits until the worker has said so many times that it lives. */
async function beats(count: number): Promise<void> {
  const seenAt = async () => {
    const [row] = await database.client`select max(seen_at)::text as seen from queue_workers`;
    return row?.seen as string | undefined;
  };
  for (let n = 0; n < count; n++) {
    const before = await seenAt();
    await until(async () => (await seenAt()) !== before);
  }
}

async function enqueue(queue: Queue, newsletters: number, options: { readonly group?: string } = {}) {
  await queue.enqueueMany(
    database.db,
    newsletter,
    Array.from({ length: newsletters }, () => options),
  );
  await queue.enqueueMany(
    database.db,
    receipt,
    Array.from({ length: RECEIPTS }, () => options),
  );
}

/** A pool, and how many claims and looks for jobs were sent by it. */
function countingClaims() {
  let claims = 0;
  const client = postgres(database.url, {
    debug: (_, text) => {
      if (/as claimed_at|passing as materialized/.test(text)) claims++;
    },
  });
  onTestFinished(() => client.end());
  return { db: drizzle({ client }), claims: () => claims };
}

const left = (kind: string) => database.db.$count(queueJobs, eq(queueJobs.kind, kind));

describe('a backlog that may not run is in nobody’s way', () => {
  const rates: readonly (readonly [string, Limits])[] = [
    ['a rate', { kinds: { newsletter: { rate: { limit: 1, perMs: HOUR_MS } } } }],
    [
      'a rate, in a queue with groups',
      { groups: {}, kinds: { newsletter: { rate: { limit: 1, perMs: HOUR_MS } } } },
    ],
  ];
  test.each(rates)('that of a kind that has used up %s', async (_, limits) => {
    const queue = limited(limits);
    await enqueue(queue, 500);
    await started(queue, [handle(newsletter, () => {}), handle(receipt, () => {})]);
    await until(async () => (await left('receipt')) === 0);
    await until(async () => (await left('newsletter')) === 499);
  });

  test('and costs its worker a few statements a second', async () => {
    const queue = limited({ kinds: { newsletter: { rate: { limit: 1, perMs: HOUR_MS } } } });
    await enqueue(queue, 50);
    const { db, claims } = countingClaims();
    await started(queue, [handle(newsletter, () => {}), handle(receipt, () => {})], db);
    await until(async () => (await left('receipt')) === 0);
    expect(claims()).toBeGreaterThan(2);
    // Past those that look whether more has come.
    await beats(1);
    const before = claims();
    const startMs = performance.now();
    await beats(2);
    expect((1_000 * (claims() - before)) / (performance.now() - startMs)).toBeLessThan(8);
  });

  test('that of a kind whose rate is raised runs soon after', async () => {
    const queue = limited({ kinds: { newsletter: { rate: { limit: 1, perMs: HOUR_MS } } } });
    await enqueue(queue, 50);
    await started(queue, [handle(newsletter, () => {}), handle(receipt, () => {})]);
    await until(async () => (await left('receipt')) === 0);
    await queue.limits.set(
      database.db,
      { queue: 'mail', kind: 'newsletter' },
      { rate: { limit: 100, perMs: HOUR_MS } },
    );
    await until(async () => (await left('newsletter')) === 0);
  });

  test.each([{}, { group: 'a' }])('that of a kind at its limit; jobs of %o', async (options) => {
    const queue = limited({ groups: {}, kinds: { newsletter: { concurrency: 1 } } });
    await enqueue(queue, 500, options);
    await started(queue, [handle(newsletter, waiting), handle(receipt, () => {})]);
    await until(async () => (await left('receipt')) === 0);
  });

  test('that of a kind without a handler', async () => {
    const queue = limited({ groups: {} });
    await enqueue(queue, 500, { group: 'a' });
    await started(queue, [handle(receipt, () => {})]);
    await until(async () => (await left('receipt')) === 0);
    expect(await left('newsletter')).toBe(500);
  });

  test('that of a kind at its limit, in several groups', async () => {
    const queue = limited({ groups: {}, kinds: { newsletter: { concurrency: 2 } } });
    for (const group of ['a', 'b', 'c']) await enqueue(queue, 200, { group });
    await started(queue, [handle(newsletter, waiting), handle(receipt, () => {})]);
    await until(async () => (await left('receipt')) === 0);
  });
});

test.each<[string, Limits, number]>([
  ['of a queue with groups', { groups: {} }, 70],
  // Every second one takes no more than the idle kind has room for, and the others are as large as they would be.
  ['of a queue without groups', {}, 140],
])('a kind with a limit that has no jobs leaves the claims %s large', async (_, groups, most) => {
  const queue = limited({ ...groups, kinds: { newsletter: { concurrency: 1 } } });
  await queue.enqueueMany(
    database.db,
    receipt,
    Array.from({ length: 300 }, () => ({})),
  );
  const startMs = performance.now();
  const { claims } = await started(queue, [handle(newsletter, () => {}), handle(receipt, () => delay(30))]);
  await until(async () => (await left('receipt')) === 0);
  // About eight jobs at a time: refilled when half of what is held has begun. Beside that it looks once a second.
  expect(claims()).toBeLessThan(most + (performance.now() - startMs) / 1_000);
});

test('an idle queue with limits of groups is not claimed from when its worker looks at limits', async () => {
  const queue = limited({ concurrency: 50, groups: { concurrency: 2 } });
  const { db, claims } = countingClaims();
  await enqueue(queue, 1, { group: 'a' });
  await started(queue, [handle(newsletter, () => {}), handle(receipt, () => {})], db);
  await until(async () => (await left('receipt')) === 0);
  // Past those that look whether more has come.
  await beats(1);
  const before = claims();
  await beats(3);
  expect(claims() - before).toBe(0);
});
