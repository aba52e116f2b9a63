import { createQueue, createWorker, defineJob, handle, limitsIn, unvalidated } from 'drizzle-queue';
import { queueJobs } from 'drizzle-queue/schema';
import * as control from 'drizzle-queue/schema/control';
import { beforeAll, beforeEach, expect, onTestFinished, test } from 'vitest';
import { addControlTables } from '../support/control-tables.ts';
import { emptyTables } from '../support/empty-tables.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';

const database = useTestDatabase({ max: 10 });
beforeAll(() => addControlTables(database));
beforeEach(async () => {
  await emptyTables(
    database.client,
    'queue_jobs',
    'queue_results',
    'queue_workers',
    'queue_groups',
    'queue_notes',
    'queue_holds',
    'queue_limits',
  );
});

type QueueLimits = Parameters<typeof limitsIn>[1][string];
type Group = Awaited<ReturnType<Awaited<ReturnType<typeof start>>['groupOf']>>;

const options = {
  payload: unvalidated<string>(),
  queue: 'exports',
  group: (group: string) => group,
  backoff: () => 3_600_000,
};
const work = defineJob('work', options);
const unserved = defineJob('unserved', options);

/** A worker whose handler of `work` does what `act` says, which may wait for the end of the test. */
async function start(limits: QueueLimits, act: (group: string, end: Promise<void>) => unknown) {
  let finish = () => {};
  const end = new Promise<void>((resolve) => {
    finish = resolve;
  });
  const queue = createQueue({ limits: limitsIn(control, { exports: limits }) });
  const handlers = [handle(work, async ({ payload }) => void (await act(payload, end)))];
  const worker = createWorker(database.db, { queue, handlers, queues: { exports: { concurrency: 5 } } });
  onTestFinished(() => {
    finish();
    return worker.stop();
  });
  await worker.start();
  const groupOf = async (name: string) => {
    const { groups } = await queue.limits.groups(database.db, { queue: 'exports' });
    return groups.find(({ group }) => group === name);
  };
  return { queue, groupOf };
}

/** Waits until a look at the group shows it as it should be; answers that look. */
async function expectGroup(
  look: () => Promise<Group>,
  expected: Partial<NonNullable<Group>>,
): Promise<Group> {
  let found: Group;
  // The end of a job frees its place in the group a moment later, and lets claims look at it once more.
  const lookAgain = async () => {
    found = await look();
    return found;
  };
  await expect.poll(lookAgain, { timeout: 100_000 }).toMatchObject(expected);
  return found;
}

const liveJobs = () => database.db.$count(queueJobs);

test('a group at its limit: as declared, as set for all, and as set for itself', async () => {
  const { queue, groupOf } = await start({ groups: { concurrency: 2 } }, (_group, end) => end);
  await queue.enqueueMany(
    database.db,
    work,
    Array.from({ length: 4 }, () => ({ payload: 'a' })),
  );
  await expectGroup(() => groupOf('a'), { running: 2, stoppedBy: 'limit', readyAt: null, blockedBy: null });

  await queue.limits.set(database.db, { queue: 'exports', group: '*' }, { concurrency: 3 });
  await until(async () => (await groupOf('a'))?.running === 3);
  await expectGroup(() => groupOf('a'), { running: 3, stoppedBy: 'limit' });

  await queue.limits.set(database.db, { queue: 'exports', group: 'a' }, { concurrency: 5 });
  await until(async () => (await groupOf('a'))?.running === 4);
  await expectGroup(() => groupOf('a'), { running: 4, stoppedBy: null });
});

test('a group whose rate is used up, until some of it is free again', async () => {
  const { queue, groupOf } = await start({ groups: { rate: { limit: 1, perMs: 3_600_000 } } }, () => 0);
  await queue.enqueueMany(database.db, work, [{ payload: 'a' }, { payload: 'a' }, { payload: 'b' }]);
  await until(async () => (await liveJobs()) === 1);
  const stopped = await expectGroup(() => groupOf('a'), { running: 0, state: 'waiting', stoppedBy: 'rate' });
  expect(stopped?.readyAt?.getTime()).toBeGreaterThan(Date.now());
  await expectGroup(() => groupOf('b'), { stoppedBy: null });
});

test.each(['a', '*'])('a rate that was set at run time, for %s', async (group) => {
  const { queue, groupOf } = await start({ groups: 'fair' }, () => 0);
  const rate = { limit: 1, perMs: 3_600_000 };
  await queue.limits.set(database.db, { queue: 'exports', group }, { rate });
  await queue.enqueueMany(database.db, work, [{ payload: 'a' }, { payload: 'a' }]);
  await until(async () => (await liveJobs()) === 1);
  await expectGroup(() => groupOf('a'), { running: 0, state: 'waiting', stoppedBy: 'rate' });
});

test('one after the other: behind a job that runs, is to be retried, or was discarded', async () => {
  const { queue, groupOf } = await start({ groups: { serial: 'success' } }, async (group, end) => {
    if (group === 'runs') return await end;
    throw group === 'retried' ? new Error('later') : group;
  });
  const first = new Map<string, number>();
  for (const [group, maxAttempts] of [
    ['runs', 1],
    ['retried', 2],
    ['discarded', 1],
  ] as const) {
    first.set(group, (await queue.enqueue(database.db, work, group, { maxAttempts })).id);
    await queue.enqueue(database.db, work, group);
  }
  await expectGroup(() => groupOf('runs'), { running: 1, stoppedBy: 'order', blockedBy: null });
  // Its attempt is counted from its claim on, while it still runs.
  await until(async () => (await queue.find(database.db, first.get('retried') ?? 0))?.errors.length === 1);
  await expectGroup(() => groupOf('retried'), { running: 0, stoppedBy: 'order', blockedBy: null });
  await until(async () => (await groupOf('discarded'))?.state === 'blocked');
  await expectGroup(() => groupOf('discarded'), {
    running: 0,
    state: 'blocked',
    stoppedBy: 'order',
    blockedBy: first.get('discarded') ?? 0,
  });
});

test('a group whose due jobs no worker has a handler for', async () => {
  const { queue, groupOf } = await start({ groups: 'fair' }, () => 0);
  await queue.enqueue(database.db, work, 'a');
  await queue.enqueue(database.db, unserved, 'a');
  await until(async () => (await liveJobs()) === 1);
  await expectGroup(() => groupOf('a'), { running: 0, stoppedBy: 'handler' });
});

test('in order, a due job without a handler in front of one that has a handler', async () => {
  const { queue, groupOf } = await start({ groups: { serial: 'end' } }, () => 0);
  await queue.enqueue(database.db, work, 'a');
  await until(async () => (await liveJobs()) === 0);
  await database.db.transaction(async (tx) => {
    await queue.enqueue(tx, unserved, 'a');
    await queue.enqueue(tx, work, 'a');
  });
  await expectGroup(() => groupOf('a'), { running: 0, stoppedBy: 'handler', blockedBy: null });
  expect(await liveJobs()).toBe(2);
});

test('nothing stops a group without a due job', async () => {
  const { queue, groupOf } = await start({ groups: {} }, () => 0);
  await queue.enqueue(database.db, work, 'a');
  await until(async () => (await liveJobs()) === 0);
  await queue.enqueue(database.db, work, 'a', { delayMs: 3_600_000 });
  await expectGroup(() => groupOf('a'), { running: 0, stoppedBy: null });
});

test('kinds in a list may be given a concurrency at run time', async () => {
  const queue = createQueue({ limits: limitsIn(control, { exports: { kinds: ['work', 'unserved'] } }) });
  const name = { queue: 'exports', kind: 'unserved' };
  await queue.limits.set(database.db, name, { concurrency: 1 });
  const { limits } = await queue.limits.list(database.db, { queue: 'exports' });
  expect(limits.map(({ kind, override }) => [kind, override])).toEqual([
    [undefined, undefined],
    ['work', undefined],
    ['unserved', { concurrency: 1 }],
  ]);
  await expect(
    queue.limits.set(database.db, { queue: 'exports', kind: 'other' }, { concurrency: 1 }),
  ).rejects.toThrow("the kind 'other' has no declared limits");
});
