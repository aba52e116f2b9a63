import {
  createQueue,
  createWorker,
  defineJob,
  drain,
  fixedBackoff,
  handle,
  limitsIn,
  NonRetryableError,
  snooze,
  unvalidated,
} from 'drizzle-queue';
import * as control from 'drizzle-queue/schema/control';
import { afterEach, beforeAll, describe, expect, test } from 'vitest';
import { addWorkers } from '../queries/support/groups.ts';
import { addControlTables } from '../support/control-tables.ts';
import { runningMsUntil } from '../support/running-time.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';
import { nextEvent } from './next-event.ts';

const database = useTestDatabase({ max: 10 });
beforeAll(() => addControlTables(database));
const workers: { stop(): Promise<void> }[] = [];
afterEach(async () => {
  await Promise.all(workers.splice(0).map((worker) => worker.stop()));
  await database.client.unsafe(`
    delete from queue_jobs; delete from queue_results; delete from queue_groups; delete from queue_notes;
    delete from queue_holds; delete from queue_limits; delete from queue_usage`);
});

interface Given {
  readonly group: string;
  readonly n: number;
}

type Limits = Parameters<typeof limitsIn>[1][string];

function setUp(limits: Limits, { maxAttempts = 5 } = {}) {
  const queue = createQueue({ limits: limitsIn(control, { work: limits }) });
  const step = defineJob('step', {
    payload: unvalidated<Given>(),
    queue: 'work',
    maxAttempts,
    backoff: fixedBackoff(150),
    group: ({ group }) => group,
  });
  return { queue, step };
}

const jobs = (group: string, count: number) =>
  Array.from({ length: count }, (_, n) => ({ payload: { group, n } }));

async function start(worker: ReturnType<typeof createWorker>): Promise<void> {
  workers.push(worker);
  await worker.start();
}

const later = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

/**
 * A worker with one slot, whose jobs take so long that nothing is claimed ahead. Answers their groups, as they begin.
 *
 * @param act what the nth job does
 */
async function startOneSlot(
  queue: ReturnType<typeof setUp>['queue'],
  step: ReturnType<typeof setUp>['step'],
  act: (n: number) => Promise<void> = async () => {},
): Promise<readonly string[]> {
  const order: string[] = [];
  const work = handle(step, async ({ payload: { group } }) => {
    order.push(group);
    await act(order.length);
    await later(60);
  });
  await start(createWorker(database.db, { queue, queues: { work: { concurrency: 1 } }, handlers: [work] }));
  return order;
}

describe('concurrency of a group', () => {
  test('is held by several workers together, and reached', async () => {
    const { queue, step } = setUp({ groups: { concurrency: 2 } });
    const running = new Map<string, number>();
    const most = new Map<string, number>();
    let done = 0;
    const handler = handle(step, async ({ payload: { group } }) => {
      running.set(group, (running.get(group) ?? 0) + 1);
      most.set(group, Math.max(most.get(group) ?? 0, running.get(group) ?? 0));
      await later(15);
      running.set(group, (running.get(group) ?? 0) - 1);
      done++;
    });
    for (let n = 0; n < 3; n++) await start(createWorker(database.db, { queue, handlers: [handler] }));
    for (const group of ['a', 'b', 'c']) await queue.enqueueMany(database.db, step, jobs(group, 20));
    await until(() => done === 60);
    expect(Object.fromEntries(most)).toEqual({ a: 2, b: 2, c: 2 });
  });

  test('a drain works through all of them', async () => {
    const { queue, step } = setUp({ groups: { concurrency: 1 } });
    for (const group of ['a', 'b', 'c']) await queue.enqueueMany(database.db, step, jobs(group, 5));
    const result = await drain(database.db, {
      queue,
      handlers: [handle(step, async () => {})],
      deadlineMs: 20_000,
    });
    expect(result).toMatchObject({ completed: 15, empty: true });
  });

  test('an open transaction that cancels a job of a group holds up nobody', async () => {
    const { queue, step } = setUp({ groups: { concurrency: 2 } });
    const [first] = await queue.enqueueMany(database.db, step, jobs('a', 1));
    const ran: number[] = [];
    await start(
      createWorker(database.db, {
        queue,
        handlers: [
          handle(step, async ({ payload: { n } }) => {
            ran.push(n);
            return n === 0 ? snooze(60_000) : undefined;
          }),
        ],
      }),
    );
    await until(async () => (await queue.find(database.db, first?.id ?? 0))?.state === 'scheduled');
    await database.db.transaction(async (tx) => {
      // It removes the hold that the job has left.
      expect(await queue.cancel(tx, first?.id ?? 0)).toMatchObject({ cancelled: true });
      await queue.enqueueMany(database.db, step, [
        { payload: { group: 'a', n: 1 } },
        { payload: { group: 'b', n: 2 } },
      ]);
      expect(await runningMsUntil(until(() => ran.length === 3))).toBeLessThan(3_000);
    });
    expect(ran.sort()).toEqual([0, 1, 2]);
  });

  test('a drain takes in all that is in no group, and those that nobody has noted', async () => {
    const { queue, step } = setUp({ groups: { concurrency: 100 } });
    await createQueue().enqueueMany(
      database.db,
      defineJob('step', { payload: unvalidated<Given>(), queue: 'work' }),
      jobs('a', 2_500),
    );
    await queue.enqueueMany(database.db, step, jobs('b', 10));
    await database.client`delete from queue_notes where 'b' = any(group_keys)`;
    const handlers = [handle(step, () => {})];
    const options = { queue, handlers, concurrency: 100, deadlineMs: 60_000 };
    expect(await drain(database.db, options)).toMatchObject({
      completed: 2_510,
      empty: true,
    });
  }, 240_000);

  test('jobs that were enqueued before the queue had groups run, too', async () => {
    const { queue, step } = setUp({ groups: { concurrency: 1 } });
    const before = createQueue();
    const plain = defineJob('step', { payload: unvalidated<Given>(), queue: 'work' });
    await before.enqueueMany(database.db, plain, jobs('a', 3));
    await before.enqueue(database.db, plain, { group: 'a', n: 3 }, { delayMs: 400 });
    const ran: number[] = [];
    await start(
      createWorker(database.db, {
        queue,
        handlers: [handle(step, async ({ payload }) => void ran.push(payload.n))],
      }),
    );
    await until(() => ran.length === 4);
    expect(ran).toEqual([0, 1, 2, 3]);
  });

  test('one that was held by a worker without groups runs after the death of that worker', async () => {
    const { queue, step } = setUp({ groups: { concurrency: 1 } });
    const plain = defineJob('step', { payload: unvalidated<Given>(), queue: 'work' });
    const refs = await createQueue().enqueueMany(database.db, plain, jobs('a', 2));
    // One has died before, and the other dies later, while its peers know the groups.
    const [living = 0] = await addWorkers(database.client);
    const holders = [living, living + 1_000_000];
    for (const [n, { id }] of refs.entries())
      await database.client`
        update queue_jobs set worker_id = ${holders[n] ?? 0}, fence = 1, attempt = 1, claimed_at = now()
        where id = ${id}`;
    const ran: number[] = [];
    await start(
      createWorker(database.db, {
        queue,
        handlers: [handle(step, async ({ payload }) => void ran.push(payload.n))],
      }),
    );
    await until(() => ran.length === 1, { timeoutMs: 15_000 });
    expect(ran).toEqual([1]);
    await database.client`delete from queue_workers where id = ${living}`;
    await until(() => ran.length === 2, { timeoutMs: 15_000 });
    expect(ran).toEqual([1, 0]);
  });

  test('a job that comes later begins at once, and so does one that is scheduled', async () => {
    const { queue, step } = setUp({ groups: {} });
    const began: number[] = [];
    const worker = createWorker(database.db, {
      queue,
      // Without its notification the job would begin after 45 seconds or more.
      pollIntervalMs: 60_000,
      handlers: [handle(step, async ({ payload }) => void began.push(payload.n))],
    });
    const listening = nextEvent(worker, 'listening');
    const idle = nextEvent(worker, 'idle');
    await start(worker);
    await Promise.all([listening, idle]);
    await queue.enqueue(database.db, step, { group: 'a', n: 1 });
    expect(await runningMsUntil(until(() => began.length === 1))).toBeLessThan(20_000);
    await queue.enqueue(database.db, step, { group: 'a', n: 2 }, { delayMs: 300 });
    await until(() => began.length === 2);
    expect(began).toEqual([1, 2]);
  });
});

describe('one after the other', () => {
  test.each(['attempt', 'end', 'success'] as const)(
    '%s: in order, without overlap, by two workers',
    async (serial) => {
      const { queue, step } = setUp({ groups: { serial } });
      const order = new Map<string, number[]>();
      const running = new Set<string>();
      let overlaps = 0;
      const handler = handle(step, async ({ payload: { group, n } }) => {
        if (running.has(group)) overlaps++;
        running.add(group);
        await later(2);
        order.set(group, [...(order.get(group) ?? []), n]);
        running.delete(group);
      });
      for (const group of ['a', 'b']) await queue.enqueueMany(database.db, step, jobs(group, 40));
      for (let n = 0; n < 2; n++) await start(createWorker(database.db, { queue, handlers: [handler] }));
      await until(() => [...order.values()].flat().length === 80);
      const all = Array.from({ length: 40 }, (_, n) => n);
      expect([order.get('a'), order.get('b'), overlaps]).toEqual([all, all, 0]);
    },
  );

  test.each([
    ['attempt', [0, 1, 2, 3, 1]],
    ['end', [0, 1, 1, 2, 3]],
    ['success', [0, 1, 1, 2, 3]],
  ] as const)('%s: after a failed attempt', async (serial, expected) => {
    const { queue, step } = setUp({ groups: { serial } });
    const order: number[] = [];
    await queue.enqueueMany(database.db, step, jobs('a', 4));
    await start(
      createWorker(database.db, {
        queue,
        handlers: [
          handle(step, async ({ payload: { n }, job }) => {
            order.push(n);
            if (n === 1 && job.attempt === 1) throw new Error('once');
          }),
        ],
      }),
    );
    await until(() => order.length === expected.length);
    expect(order).toEqual(expected);
  });

  test.each([
    ['attempt', [0, 1, 2, 1]],
    ['end', [0, 1, 1, 2]],
    ['success', [0, 1, 1, 2]],
  ] as const)('%s: after a snooze', async (serial, expected) => {
    const { queue, step } = setUp({ groups: { serial } });
    const order: number[] = [];
    await queue.enqueueMany(database.db, step, jobs('a', 3));
    await start(
      createWorker(database.db, {
        queue,
        handlers: [
          handle(step, async ({ payload: { n } }) => {
            order.push(n);
            return n === 1 && order.length === 2 ? snooze(200) : undefined;
          }),
        ],
      }),
    );
    await until(() => order.length === 4);
    expect(order).toEqual(expected);
  });

  test('a job that waits for its next attempt stops nobody any more when it is cancelled', async () => {
    const { queue, step } = setUp({ groups: { serial: 'end' } });
    const order: number[] = [];
    const ids = await queue.enqueueMany(database.db, step, jobs('a', 3));
    await start(
      createWorker(database.db, {
        queue,
        handlers: [
          handle(step, async ({ payload: { n } }) => {
            order.push(n);
            return n === 0 ? snooze(60_000) : undefined;
          }),
        ],
      }),
    );
    const first = ids[0]?.id ?? 0;
    await until(async () => (await queue.find(database.db, first))?.state === 'due' && order.length === 1);
    expect(await queue.cancel(database.db, first)).toMatchObject({ cancelled: true });
    await until(() => order.length === 3);
    expect(order).toEqual([0, 1, 2]);
  });

  test('success: a discarded job stops its group until it was redriven', async () => {
    const { queue, step } = setUp({ groups: { serial: 'success' } });
    const order: number[] = [];
    let fails = true;
    const ids = await queue.enqueueMany(database.db, step, jobs('a', 3));
    await start(
      createWorker(database.db, {
        queue,
        handlers: [
          handle(step, async ({ payload: { n } }) => {
            order.push(n);
            if (n === 1 && fails) throw new NonRetryableError('no');
          }),
        ],
      }),
    );
    await until(() => order.length === 2);
    await later(400);
    expect(order).toEqual([0, 1]);
    fails = false;
    await queue.redrive(database.db, ids[1]?.id ?? 0);
    await until(() => order.length === 4);
    expect(order).toEqual([0, 1, 1, 2]);
  });

  test('a group that has long waited gets its turns with one slot, however many new groups come', async () => {
    const { queue, step } = setUp({ groups: {} });
    await queue.enqueueMany(database.db, step, jobs('old', 30));
    const order = await startOneSlot(queue, step, async (n) => {
      // Two tenants for each job, so one is always new.
      await queue.enqueueMany(database.db, step, [...jobs(`new ${n}`, 1), ...jobs(`newer ${n}`, 1)]);
    });
    await until(() => order.length >= 30);
    const old = order.slice(0, 30).filter((group) => group === 'old').length;
    // Each second claim begins with those that wait; some of the others bring nothing, of groups that are empty by now.
    expect(old).toBeGreaterThanOrEqual(5);
    expect(old).toBeLessThanOrEqual(20);
  });

  test('the only job of a group waits for one round, not for the notes of another one before its own', async () => {
    const { queue, step } = setUp({ groups: {} });
    // As 30,000 enqueues by themselves leave it: a note each, at times of their own.
    await database.client`
      with inserted as (
        insert into queue_jobs (queue, kind, payload, max_attempts, group_key, run_at)
        select 'work', 'step', jsonb_build_object('group', 'a', 'n', n), 20, 'a', now() - n * interval '1 ms'
        from generate_series(1, 30000) as n
        returning run_at, group_key
      )
      insert into queue_notes (queue, due_at, group_keys)
      select 'work', run_at, array[group_key] from inserted`;
    await queue.enqueueMany(database.db, step, jobs('b', 1));
    const order = await startOneSlot(queue, step);
    await until(() => order.length >= 3);
    expect(order.slice(0, 3)).toContain('b');
  });

  test('a handler sees the group of its job, where that has one', async () => {
    const { queue, step } = setUp({ groups: {} });
    const plain = defineJob('plain', { queue: 'work' });
    const seen: (string | undefined)[] = [];
    const drained = () =>
      drain(database.db, {
        queue,
        handlers: [
          handle(step, ({ job }) => void seen.push(job.group)),
          handle(plain, ({ job }) => void seen.push(job.group)),
        ],
        deadlineMs: 20_000,
      });
    await queue.enqueueMany(database.db, step, jobs('a', 1));
    await drained();
    await queue.enqueue(database.db, plain);
    await drained();
    expect(seen).toEqual(['a', undefined]);
  });

  test('a handler that completes its job itself lets the next begin', async () => {
    const { queue, step } = setUp({ groups: { serial: 'end' } });
    const order: number[] = [];
    await queue.enqueueMany(database.db, step, jobs('a', 5));
    await start(
      createWorker(database.db, {
        queue,
        handlers: [
          handle(step, async ({ payload: { n }, complete }) => {
            order.push(n);
            await database.db.transaction(async (tx) => await complete(tx));
          }),
        ],
      }),
    );
    await until(() => order.length === 5);
    expect(order).toEqual([0, 1, 2, 3, 4]);
  });

  test('a stop gives back what stands behind the one that runs', async () => {
    const { queue, step } = setUp({ groups: { serial: 'end' } });
    await queue.enqueueMany(database.db, step, jobs('a', 5));
    let began = 0;
    const worker = createWorker(database.db, {
      queue,
      handlers: [
        handle(step, async () => {
          began++;
          await later(200);
        }),
      ],
    });
    await worker.start();
    await until(() => began === 1);
    await worker.stop();
    const rows = await database.client`
      select worker_id is null as free, attempt from queue_jobs where queue = 'work'`;
    expect([...rows]).toEqual(new Array(4).fill({ free: true, attempt: 0 }));
  });

  test('kinds with one attempt are begun one by one', async () => {
    const { queue, step } = setUp({ groups: { serial: 'end' } }, { maxAttempts: 1 });
    const order: number[] = [];
    await queue.enqueueMany(database.db, step, jobs('a', 30));
    await start(
      createWorker(database.db, {
        queue,
        handlers: [handle(step, async ({ payload: { n } }) => void order.push(n))],
      }),
    );
    await until(() => order.length === 30);
    expect(order).toEqual(Array.from({ length: 30 }, (_, n) => n));
  });
});

describe('what stands behind a job that its worker has lost', () => {
  test.each([
    ['end', 'completes'],
    ['attempt', 'completes'],
    ['attempt', 'fails'],
  ] as const)("waits for the new holder ('%s', and the lost attempt %s)", async (serial, end) => {
    const { queue, step } = setUp({ groups: { serial } });
    const begun: string[] = [];
    let open = () => {};
    const gate = new Promise<void>((resolve) => {
      open = resolve;
    });
    // However long it takes to hear that the first is lost: no more than one begins until then.
    let hear = () => {};
    const known = new Promise<void>((resolve) => {
      hear = resolve;
    });
    const handler = handle(step, async ({ payload: { group, n }, job }) => {
      begun.push(`${group}${n}`);
      if (group === 'lost' && n === 0 && job.attempt === 1) {
        await gate;
        if (end === 'fails') throw new Error('on purpose');
      } else if (group === 'lost') await known;
    });
    const worker = createWorker(database.db, { queue, handlers: [handler] });
    let most = 0;
    worker.on('claimed', ({ count }) => {
      most = Math.max(most, count);
    });
    worker.on('lost', () => hear());
    await start(worker);
    // Once it knows that they are short, it claims several of a group at once.
    for (let round = 1; most <= 2; round++) {
      await queue.enqueueMany(database.db, step, jobs('warm', 20));
      await until(() => begun.length === 20 * round);
    }
    const warm = begun.length;
    await queue.enqueueMany(database.db, step, jobs('lost', 6));
    await until(() => begun.length === warm + 1);
    const held = async () =>
      (await database.client`select id from queue_jobs where worker_id is not null order by id`).map(
        ({ id }) => id,
      );
    const run = await held();
    expect(run.length).toBeGreaterThan(2);
    // What a peer does that has taken the worker for gone: it claims the first, and lives.
    const [peer] = await database.client`
      insert into queue_workers (name, queues) values ('peer', '[]') returning id`;
    await database.client`update queue_jobs set worker_id = ${peer?.id}, fence = fence + 1 where id = ${run[0]}`;
    open();
    await until(async () => (await held()).length === 1);
    await later(200);
    // The next one begins before the end of the first is written, if that was no failure.
    expect(begun.length - warm - 1).toBeLessThanOrEqual(end === 'completes' ? 1 : 0);
    expect((await held()).length).toBe(1);
    const before = begun.length;
    // It dies, and who declares it gone tells claims of its groups.
    await database.client`delete from queue_workers where id = ${peer?.id}`;
    await database.client`insert into queue_notes (queue, due_at, group_keys) values ('work', now(), '{lost}')`;
    await until(async () => (await database.client`select from queue_jobs`).length === 0);
    expect(begun.slice(before)[0]).toBe('lost0');
    expect(begun.slice(before)).toEqual(begun.slice(before).toSorted());
  });
});
