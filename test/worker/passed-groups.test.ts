import { createQueue, createWorker, defineJob, drain, handle, limitsIn, unvalidated } from 'drizzle-queue';
import * as control from 'drizzle-queue/schema/control';
import { beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { addControlTables } from '../support/control-tables.ts';
import { emptyTables } from '../support/empty-tables.ts';
import { gate } from '../support/gate.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';

const database = useTestDatabase({ max: 10 });
beforeAll(() => addControlTables(database));
beforeEach(async () => {
  await emptyTables(database.client, 'queue_jobs', 'queue_results', 'queue_workers', 'queue_usage');
  await emptyTables(database.client, 'queue_groups', 'queue_notes', 'queue_holds', 'queue_limits');
});

type Limits = Parameters<typeof limitsIn>[1][string];
const queueWith = (limits: Limits) => createQueue({ limits: limitsIn(control, { shared: limits }) });
const jobOf = (kind: string) =>
  defineJob(kind, { payload: unvalidated<string>(), queue: 'shared', group: (tenant: string) => tenant });
const served = jobOf('served');
const other = jobOf('other');

const TENANTS = Array.from({ length: 200 }, (_, n) => ({ payload: `tenant-${n}` }));
const mine = (count: number) => new Array(count).fill({ payload: 'mine' });

/** What a drain of ten slots calls, where nothing but `served` has a handler. */
async function drained(limits: Limits): Promise<string[]> {
  const called: string[] = [];
  const { empty } = await drain(database.db, {
    queue: queueWith(limits),
    handlers: [handle(served, ({ payload }) => void called.push(payload))],
    deadlineMs: 60_000,
  });
  expect(empty).toBe(true);
  return called;
}

test.each<[string, Limits]>([
  ['for shares', { groups: {} }],
  ['in order', { groups: { serial: 'end' } }],
  ['one at a time', { groups: { concurrency: 1 } }],
])('a drain passes groups of which it serves no job: %s', async (_, limits) => {
  const queue = queueWith(limits);
  await queue.enqueueMany(database.db, other, TENANTS);
  // Those have had their first look, and stand in the ring.
  expect(await drained(limits)).toEqual([]);
  await queue.enqueueMany(database.db, served, mine(3));
  expect(await drained(limits)).toEqual(['mine', 'mine', 'mine']);
  expect(await database.client`select from queue_jobs`).toHaveLength(TENANTS.length);
});

test('in order, a group whose first job is for others is left to them, whatever stands behind', async () => {
  const limits: Limits = { groups: { serial: 'end' } };
  const queue = queueWith(limits);
  await queue.enqueueMany(database.db, other, TENANTS);
  await queue.enqueueMany(database.db, served, [...TENANTS, ...mine(2)]);
  expect(await drained(limits)).toEqual(['mine', 'mine']);
});

test('a drain goes on behind groups in which nothing is due any more', async () => {
  await queueWith({ groups: {} }).enqueueMany(database.db, served, mine(2));
  await database.client`delete from queue_notes`;
  // As after a cancel of all that these had due.
  await database.client`
    insert into queue_groups (queue, group_key, ready_at, turn)
    select 'shared', 'tenant-' || n, '-infinity'::timestamptz, n from generate_series(0, 199) as n
    union all select 'shared', 'mine', '-infinity', 1000`;
  expect(await drained({ groups: {} })).toEqual(['mine', 'mine']);
});

test('a drain goes on behind groups that are at their limit', async () => {
  const limits: Limits = { groups: { concurrency: 1 } };
  const queue = queueWith(limits);
  const running = gate();
  let begun = 0;
  const worker = createWorker(database.db, {
    queue,
    handlers: [
      handle(other, async () => {
        begun++;
        await running.opened;
      }),
    ],
    queues: { shared: { concurrency: TENANTS.length } },
  });
  onTestFinished(() => worker.stop());
  // Before that.
  onTestFinished(() => running.open());
  await queue.enqueueMany(database.db, other, TENANTS);
  await worker.start();
  await until(() => begun === TENANTS.length);
  await queue.enqueueMany(database.db, served, [...TENANTS, ...mine(1)]);
  // As after a fold: all of them may be looked at.
  await database.client`update queue_groups set ready_at = '-infinity'`;
  expect(await drained(limits)).toEqual(['mine']);
});

test('a worker passes groups whose jobs are of a kind at its limit', async () => {
  const queue = queueWith({ groups: {}, kinds: { other: { concurrency: 1 } } });
  const running = gate();
  let others = 0;
  const called: string[] = [];
  const worker = createWorker(database.db, {
    queue,
    handlers: [
      handle(other, async () => {
        others++;
        await running.opened;
      }),
      handle(served, ({ payload }) => void called.push(payload)),
    ],
  });
  onTestFinished(() => worker.stop());
  // Before that.
  onTestFinished(() => running.open());
  await worker.start();
  await queue.enqueueMany(database.db, other, TENANTS);
  await until(() => others === 1);
  // What the tenants have has to wait. With one claim a second, of ten groups, each round would take half a minute.
  for (let round = 1; round <= 5; round++) {
    await queue.enqueueMany(database.db, served, mine(3));
    await until(() => called.length === 3 * round, { timeoutMs: 10_000 });
  }
  expect(others).toBe(1);
});

describe('behind more groups than one claim passes', () => {
  const MANY = 21_000;
  beforeEach(async () => {
    const { db } = database;
    const queue = queueWith({ groups: {} });
    await queue.enqueueMany(
      db,
      other,
      [...new Array(MANY).keys()].map((n) => ({ payload: `tenant-${n}` })),
    );
    await queue.enqueueMany(db, served, mine(2));
  });

  test('a group is found by a drain', async () => {
    expect(await drained({ groups: {} })).toEqual(['mine', 'mine']);
  });

  test('a group is found by a worker', async () => {
    const called: string[] = [];
    const worker = createWorker(database.db, {
      queue: queueWith({ groups: {} }),
      handlers: [handle(served, ({ payload }) => void called.push(payload))],
    });
    onTestFinished(() => worker.stop());
    await worker.start();
    // At five groups a second, as claims turn them, it took half an hour.
    await until(() => called.length === 2, { timeoutMs: 20_000 });
  });
});
