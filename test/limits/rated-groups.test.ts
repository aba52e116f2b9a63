import { setTimeout as delay } from 'node:timers/promises';
import { sql } from 'drizzle-orm';
import {
  createQueue,
  createWorker,
  defineJob,
  handle,
  handleBatch,
  limitsIn,
  type QueueLimits,
  unvalidated,
} from 'drizzle-queue';
import * as control from 'drizzle-queue/schema/control';
import { beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { startWithin, startWithinMs } from '../../src/features/limits/sql/start-time.ts';
import { GroupStarts } from '../../src/features/limits/worker/group-starts.ts';
import { rowsOf } from '../integration/behaviours/behaviour.ts';
import { AT_ONCE, addGrouped, addWorkers, claimGroups, clearGroups } from '../queries/support/groups.ts';
import { idsOf } from '../queries/support/jobs.ts';
import { addControlTables } from '../support/control-tables.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';
import { mostInWindow } from './order.ts';

const database = useTestDatabase({ max: 8 });
const rate = { limit: 4, perMs: 1_000 };
/** Longer than a job of such a group may begin after its claim, and shorter than a worker keeps what it has claimed ahead. */
const HELD_MS = 300;

beforeAll(() => addControlTables(database));
beforeEach(() => clearGroups(database.client));

describe('no window sees more handlers of a group begin than its rate', () => {
  const rated = defineJob('rated', { queue: 'q', payload: unvalidated<{ holdMs: number }>() });
  const begun: { at: number; cost: number }[] = [];
  const begunIds: number[] = [];
  const note = () => begun.push({ at: performance.now() * 1_000, cost: 1 });

  async function start(limits: QueueLimits, handler: 'single' | 'batch') {
    begun.length = 0;
    begunIds.length = 0;
    const queue = createQueue({ limits: limitsIn(control, { q: limits }) });
    const worker = createWorker(database.db, {
      queue,
      queues: { q: { concurrency: 1 } },
      handlers: [
        handler === 'single'
          ? handle(rated, async ({ job, payload: { holdMs } }) => {
              if (job.group === 'r') {
                note();
                begunIds.push(job.id);
              }
              if (holdMs > 0) await delay(holdMs);
            })
          : handleBatch(rated, { maxSize: 100, maxWaitMs: HELD_MS }, async (jobs) => {
              for (const _ of jobs) note();
            }),
      ],
    });
    onTestFinished(() => worker.stop());
    await worker.start();
    return { queue, worker };
  }

  const done = async (count: number) => {
    await until(() => begun.length >= count, { timeoutMs: 60_000 });
    expect(begun).toHaveLength(count);
    expect(mostInWindow(begun, rate.perMs)).toBeLessThanOrEqual(rate.limit);
  };

  test.each([
    ['declared', { groups: { rate } }],
    ['set at run time', { groups: {} }],
  ] as const)('%s, though the slot was taken when they were claimed', async (_, limits) => {
    const { queue } = await start(limits, 'single');
    await queue.limits.set(database.db, { queue: 'q', group: 'r' }, { rate });
    // After short jobs a worker claims ahead.
    const short = Array.from({ length: 10 }, (_, n) => ({ payload: { holdMs: 0 }, group: `w${n}` }));
    await queue.enqueueMany(database.db, rated, short);
    const left = () => database.client`select from queue_jobs`;
    await until(async () => (await left()).length === 0);
    await queue.enqueueMany(database.db, rated, [
      { payload: { holdMs: HELD_MS }, group: 'holds the slot', priority: 0 },
      ...Array.from({ length: 3 * rate.limit }, () => ({ payload: { holdMs: 0 }, group: 'r' })),
    ]);
    await done(3 * rate.limit);
  });

  test('one after the other, in their order', async () => {
    const { queue } = await start({ groups: { rate, serial: 'end' } }, 'single');
    const jobs = Array.from({ length: 3 * rate.limit }, () => ({ payload: { holdMs: 5 }, group: 'r' }));
    const enqueued = await queue.enqueueMany(database.db, rated, jobs);
    await done(3 * rate.limit);
    expect(begunIds).toEqual(enqueued.map(({ id }) => id));
  });

  test('in batches that gather for longer than a job may wait', async () => {
    const { queue } = await start({ groups: { rate } }, 'batch');
    const jobs = Array.from({ length: 3 * rate.limit }, () => ({ payload: { holdMs: 0 }, group: 'r' }));
    await queue.enqueueMany(database.db, rated, jobs);
    await done(3 * rate.limit);
  });
});

test('a claim that knows of no rates leaves groups that have one, and says so', async () => {
  const [worker = 0] = await addWorkers(database.client);
  await database.client`
    insert into queue_limits (queue, kind, group_key, rate_limit, rate_per_ms) values ('q', '', 'a', 2, 1000)`;
  const [first, second, , other] = await addGrouped(database.client, [
    ...Array.from({ length: 3 }, () => ({ group: 'a' })),
    { group: 'b' },
  ]);
  const left = await claimGroups(database.db, worker);
  expect([idsOf(left.jobs), left.signs.has('rated'), left.signs.has('more')]).toEqual([[other], true, true]);
  const taken = await claimGroups(database.db, worker, { starts: AT_ONCE });
  expect([idsOf(taken.jobs), taken.signs.has('rated')]).toEqual([[first, second], false]);
});

test('a job counts for as long as it may begin, and a window more', async () => {
  const [worker = 0] = await addWorkers(database.client);
  await addGrouped(database.client, [{ group: 'a' }]);
  const limits = { rate: { limit: 10, perMs: 1_000 } };
  const starts = { ...AT_ONCE, neededMs: 100, stretch: 8 };
  await claimGroups(database.db, worker, { limits, starts });
  const [row] = rowsOf(
    await database.db.execute(sql`
      select key::float8 - extract(epoch from j.claimed_at)::float8 * 1000 as after
      from queue_groups as g cross join jsonb_object_keys(g.rate_used) as key cross join queue_jobs as j`),
  );
  // It counts from the end of a twentieth of the window.
  expect(row?.after).toBeGreaterThan(800);
  expect(row?.after).toBeLessThanOrEqual(850);
});

test('worker and statement agree how long a job may begin', async () => {
  const cases = [100, 999, 1_000, 60_000, 86_400_000].flatMap((perMs) =>
    [0, 13.7, 50, 5_000].flatMap((neededMs) => [1, 1.9, 64].map((stretch) => ({ perMs, neededMs, stretch }))),
  );
  for (const { perMs, ...times } of cases) {
    const within = startWithin(sql`${perMs}::int8`, times.neededMs, times.stretch);
    const [row] = rowsOf(await database.db.execute(sql`select ${within} as within`));
    expect(Number(row?.within)).toBe(startWithinMs(perMs, times));
  }
});

test('jobs of claims that were put back give those of the next claims more time, less and less', () => {
  const starts = new GroupStarts(true);
  // How long answers take is not known before the first one.
  const unknown = starts.ofClaim();
  expect((unknown?.beginTime(2_000).untilMs ?? 0) - (unknown?.sentMs ?? 0)).toBeCloseTo(250);
  if (unknown !== undefined) starts.noteAnswer(unknown);
  const first = starts.ofClaim();
  expect(first).toMatchObject({ neededMs: 50, stretch: 1 });
  const time = first?.beginTime(2_000);
  expect((time?.untilMs ?? 0) - (first?.sentMs ?? 0)).toBeCloseTo(50);
  expect(first?.beginTime(2_000)).toBe(time);
  // A listener may clone the job that has it.
  expect(structuredClone(time)).toEqual({ untilMs: time?.untilMs });
  time?.onMissed();
  // Each of its jobs says so.
  time?.onMissed();
  const second = starts.ofClaim();
  expect(second?.stretch).toBe(2);
  second?.beginTime(2_000).onMissed();
  const third = starts.ofClaim();
  expect(third?.stretch).toBe(4);
  if (third !== undefined) starts.noteAnswer(third);
  expect(starts.ofClaim()?.stretch).toBeCloseTo(3.8);
  expect(new GroupStarts(false).ofClaim()).toBeUndefined();
});
