import { setTimeout as sleep } from 'node:timers/promises';
import { eq, isNotNull } from 'drizzle-orm';
import { createQueue, createWorker, defineJob, handle, unvalidated } from 'drizzle-queue';
import { queueJobs } from 'drizzle-queue/schema';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { Patience } from '../../../src/core/worker/begin/patience.ts';
import { Prefetch } from '../../../src/core/worker/begin/prefetch.ts';
import { gate } from '../../support/gate.ts';
import { useTestDatabase } from '../../support/test-database.ts';
import { until } from '../../support/until.ts';

afterEach(() => {
  vi.restoreAllMocks();
});

describe('Prefetch', () => {
  const learnt = (...durationsMs: number[]) => {
    const prefetch = new Prefetch();
    for (const ms of durationsMs) prefetch.note(ms);
    return prefetch;
  };
  const times = (n: number, ms: number) => new Array<number>(n).fill(ms);
  const jobs = (...payloadBytes: number[]) =>
    payloadBytes.map((payloadBytes) => ({ kind: 'work', payloadBytes }));

  test('claims nothing ahead before anything is known', () => {
    expect(learnt().size(10)).toBe(0);
    expect(learnt(...times(4, 0.1)).size(10)).toBe(0);
  });

  test('claims what will be finished within 50 ms, at most 4,000', () => {
    expect(learnt(...times(5, 5)).size(10)).toBe(100);
    expect(learnt(...times(5, 100)).size(10)).toBe(5);
    expect(learnt(...times(5, 0.01)).size(10)).toBe(4_000);
  });

  test('counts several jobs for a slot where batch handlers do so, within the same bounds', () => {
    expect(learnt(...times(5, 100)).size(10, 100)).toBe(500);
    expect(learnt(...times(5, 5)).size(10, 100)).toBe(4_000);
  });

  test('claims nothing ahead of long jobs', () => {
    expect(learnt(...times(5, 10_000)).size(10)).toBe(0);
    expect(learnt(...times(100, 1), ...times(3, 60_000)).size(10)).toBe(0);
  });

  test('claims no more ahead than 8 MB, by the largest payloads of late', () => {
    const prefetch = learnt(...times(5, 0.01));
    prefetch.noteClaimed(jobs(100, 1024 * 1024, 100));
    expect(prefetch.size(10)).toBe(8);
    prefetch.noteClaimed(jobs(100 * 1024 * 1024));
    expect(prefetch.size(10)).toBe(0);
    prefetch.noteClaimed(jobs(...times(4_000, 100)));
    expect(prefetch.size(10)).toBe(4_000);
  });

  test('expects jobs to begin within half a second, by what the handlers of their kinds have lately taken', () => {
    const prefetch = new Prefetch();
    const kinds = (...counts: [string, number][]) =>
      counts.flatMap(([kind, count]) => new Array<string>(count).fill(kind));
    expect(prefetch.inTime(kinds(['slow', 100]), 1, 0)).toBe(100);
    for (const ms of times(5, 1)) prefetch.note(ms, 'quick');
    prefetch.note(200, 'slow');
    // The third waits for 400 ms, the fourth for 600.
    expect(prefetch.inTime(kinds(['slow', 100]), 1, 0)).toBe(3);
    expect(prefetch.inTime(kinds(['slow', 100]), 10, 0)).toBe(26);
    expect(prefetch.inTime(kinds(['quick', 400], ['slow', 1], ['quick', 100]), 1, 0)).toBe(401);
    expect(prefetch.inTime(kinds(['unknown', 50], ['slow', 100]), 1, 0)).toBe(53);
    // Where no slot is free yet, there will be one.
    expect(prefetch.inTime(kinds(['slow', 100]), 0, 0)).toBe(3);
    // Of those for which a slot is free, none waits for another.
    expect(prefetch.inTime(kinds(['slow', 100]), 100, 100)).toBe(100);
    expect(prefetch.inTime(kinds(['slow', 100]), 1, 10)).toBe(13);
    prefetch.distrust();
    expect(prefetch.inTime(kinds(['slow', 100]), 1, 0)).toBe(3);
  });

  test('expects as many jobs of a slow kind as claims have lately brought, however seldom one ends', () => {
    const prefetch = new Prefetch();
    const claim = (quick: number, slow: number) =>
      prefetch.noteClaimed([
        ...new Array(quick).fill({ kind: 'quick', payloadBytes: 1 }),
        ...new Array(slow).fill({ kind: 'slow', payloadBytes: 1 }),
      ]);
    claim(8, 2);
    prefetch.note(1_000, 'slow');
    // A fifth of them take a second, so 200 ms each.
    for (const ms of times(200, 0.01)) prefetch.note(ms, 'quick');
    expect(prefetch.size(100)).toBe(24);
    claim(25, 0);
    expect(prefetch.size(100)).toBe(87);
    claim(100, 0);
    expect(prefetch.size(100)).toBe(4_000);
  });

  test('claims jobs of one kind ahead by how long they take themselves, once that is known', () => {
    const prefetch = new Prefetch();
    for (const ms of times(50, 0.1)) prefetch.note(ms, 'quick');
    expect([prefetch.sizeOfKind('quick', 2), prefetch.sizeOfKind('slow', 2)]).toEqual([1_000, 0]);
    for (const ms of times(4, 20)) prefetch.note(ms, 'slow');
    expect(prefetch.sizeOfKind('slow', 2)).toBe(0);
    prefetch.note(20, 'slow');
    expect([prefetch.sizeOfKind('quick', 2), prefetch.sizeOfKind('slow', 2)]).toEqual([21, 5]);
    prefetch.distrustKind('slow');
    expect([prefetch.sizeOfKind('quick', 2), prefetch.sizeOfKind('slow', 2)]).toEqual([21, 0]);
  });

  test('forgets what proved wrong', () => {
    const prefetch = learnt(...times(50, 0.1));
    prefetch.distrust();
    expect(prefetch.size(10)).toBe(0);
  });

  test('claims half as much ahead after what proved wrong, and with each claim a little more', () => {
    const prefetch = learnt(...times(50, 0.01));
    prefetch.distrust();
    for (const ms of times(5, 0.01)) prefetch.note(ms);
    expect(prefetch.size(10)).toBe(2_000);
    prefetch.noteClaimed([]);
    expect(prefetch.size(10)).toBe(2_000);
    prefetch.noteClaimed(jobs(1));
    expect(prefetch.size(10)).toBe(2_100);
    for (let claim = 0; claim < 20; claim++) prefetch.noteClaimed(jobs(1));
    expect(prefetch.size(10)).toBe(4_000);
  });
});

describe('a worker that has claimed ahead', () => {
  const database = useTestDatabase();
  const queue = createQueue();
  const work = defineJob('work', { payload: unvalidated<'short' | 'long'>() });

  test('gives back what cannot begin soon, without spending an attempt', async () => {
    let finish = () => {};
    const finished = new Promise<void>((resolve) => {
      finish = resolve;
    });
    const worker = createWorker(database.db, {
      queue,
      queues: { default: { concurrency: 2 } },
      handlers: [handle(work, ({ payload }) => (payload === 'long' ? finished : undefined))],
    });
    await worker.start();
    await queue.enqueueMany(
      database.db,
      work,
      Array.from({ length: 50 }, () => ({ payload: 'short' as const })),
    );
    await until(async () => (await database.db.$count(queueJobs)) === 0);
    // It expects them to be as short, and claims many more than its two slots can begin.
    let claimed = 0;
    worker.on('claimed', ({ count }) => {
      claimed = Math.max(claimed, count);
    });
    await queue.enqueueMany(
      database.db,
      work,
      Array.from({ length: 30 }, () => ({ payload: 'long' as const })),
    );
    await until(() => claimed > 2);
    const held = async () =>
      (await database.db.select().from(queueJobs)).filter(({ workerId }) => workerId !== null);
    await until(async () => (await held()).length === 2);
    const waiting = (await database.db.select().from(queueJobs)).filter(({ workerId }) => workerId === null);
    expect(waiting).toHaveLength(28);
    expect(waiting.every(({ attempt }) => attempt === 0)).toBe(true);
    finish();
    await until(async () => (await database.db.$count(queueJobs)) === 0);
    await worker.stop();
  });
});

describe('a worker that has claimed jobs of a kind that it knows to be slow', () => {
  const database = useTestDatabase();
  const queue = createQueue();
  const quick = defineJob('quick', {});
  const slow = defineJob('slow', {});

  test('gives back at once what will not begin in time', async () => {
    // What would give them back later.
    vi.spyOn(Patience.prototype, 'watch').mockReturnValue();
    const { db } = database;
    let open = true;
    const gates: (() => void)[] = [];
    const worker = createWorker(db, {
      queue,
      queues: { default: { concurrency: 2 } },
      handlers: [
        handle(quick, () => undefined),
        handle(slow, () => (open ? sleep(600) : new Promise<void>((resolve) => gates.push(resolve)))),
      ],
    });
    const many = (count: number) => Array.from({ length: count }, () => ({}));
    const isEmpty = async () => (await db.$count(queueJobs)) === 0;
    await worker.start();
    await queue.enqueue(db, slow);
    await until(isEmpty);
    await queue.enqueueMany(db, quick, many(200));
    await until(isEmpty);
    let claimed = 0;
    worker.on('claimed', ({ count }) => {
      claimed = Math.max(claimed, count);
    });
    open = false;
    await queue.enqueueMany(db, slow, many(30));
    await until(() => claimed > 4);
    const held = async () => await db.$count(queueJobs, isNotNull(queueJobs.workerId));
    // Two run, and two more at most begin within half a second.
    await until(async () => (await held()) <= 4);
    expect(await held()).toBeGreaterThan(2);
    expect(await db.$count(queueJobs, eq(queueJobs.attempt, 0))).toBe(30 - (await held()));
    open = true;
    for (const finish of gates) finish();
    await database.client`delete from queue_jobs where worker_id is null`;
    await until(isEmpty);
    await worker.stop();
  });
});

describe('a worker with more slots than begin in one turn', () => {
  const database = useTestDatabase();
  const queue = createQueue();
  const slow = defineJob('slow', {});

  test('gives back none of the jobs that have a slot, however slow it knows them to be', async () => {
    const { db } = database;
    const end = gate();
    let began = 0;
    const worker = createWorker(db, {
      queue,
      queues: { default: { concurrency: 600 } },
      handlers: [handle(slow, () => (++began === 1 ? sleep(700) : end.opened))],
    });
    let claimed = 0;
    worker.on('claimed', ({ count }) => {
      claimed += count;
    });
    await worker.start();
    await queue.enqueue(db, slow);
    await until(async () => (await db.$count(queueJobs)) === 0);
    await queue.enqueueMany(
      db,
      slow,
      Array.from({ length: 600 }, () => ({})),
    );
    await until(() => began === 601);
    expect(claimed).toBe(601);
    end.open();
    await until(async () => (await db.$count(queueJobs)) === 0);
    await worker.stop();
  });
});

describe('a job that is to run next', () => {
  const database = useTestDatabase();
  const queue = createQueue();
  const work = defineJob('work', { payload: unvalidated<number>() });
  const urgent = defineJob('urgent', { priority: 0 });

  test('waits no longer than half a second behind thousands that were claimed when jobs were short', async () => {
    let begun = 0;
    let before: number | undefined;
    const worker = createWorker(database.db, {
      queue,
      handlers: [
        handle(work, async ({ payload }) => {
          begun++;
          if (payload > 0) await new Promise((resolve) => setTimeout(resolve, payload));
        }),
        handle(urgent, () => {
          before = begun;
        }),
      ],
    });
    const of = (count: number, ms: number) => Array.from({ length: count }, () => ({ payload: ms }));
    await worker.start();
    let largest = 0;
    worker.on('claimed', ({ count }) => {
      largest = Math.max(largest, count);
    });
    let short = 0;
    /** Answers how many of the long ones began before the urgent job. */
    const round = async (): Promise<number> => {
      await claimMany();
      before = undefined;
      await queue.enqueue(database.db, urgent);
      await until(() => before !== undefined, { intervalMs: 5 });
      return (before ?? Number.NaN) - short;
    };
    const claimMany = async () => {
      for (;;) {
        // Until it takes them for short, which on a busy machine they are only later.
        largest = 0;
        while (largest <= 400) {
          short = begun + 1_000;
          await queue.enqueueMany(database.db, work, of(1_000, 0));
          await until(() => begun === short);
        }
        // Of these, as many are claimed as if they were as short; ten at a time, they would take many seconds.
        largest = 0;
        await queue.enqueueMany(database.db, work, of(4_000, 100));
        await until(() => largest > 400 || begun > short + 100, { intervalMs: 5 });
        if (largest > 400) return;
        // A busy machine has just told it otherwise: once more.
        await drop();
      }
    };
    const drop = async () => {
      await database.client`delete from queue_jobs where worker_id is null`;
      await until(async () => (await database.client`select from queue_jobs limit 1`).length === 0);
    };
    // In half a second 50 begin, and some more until the others are given back. While a busy server does not answer,
    // the worker goes on with what it has.
    let ahead = await round();
    for (let rounds = 1; rounds < 5 && ahead >= 200; rounds++) {
      await drop();
      ahead = await round();
    }
    expect(ahead).toBeLessThan(200);
    await worker.stop();
  });
});

describe('a crash', () => {
  const database = useTestDatabase();
  const queue = createQueue();
  const work = defineJob('work', { maxAttempts: 3 });

  test('spends no attempt of a job that waits on its last one, or after one that ended silently', async () => {
    let finish = () => {};
    const finished = new Promise<void>((resolve) => {
      finish = resolve;
    });
    let isLong = false;
    let began = 0;
    const worker = createWorker(database.db, {
      queue,
      queues: { default: { concurrency: 2 } },
      // Short enough to be claimed ahead, too long to begin in a moment.
      handlers: [
        handle(work, async () => {
          began++;
          if (isLong) await finished;
          else await new Promise((resolve) => setTimeout(resolve, 8));
        }),
      ],
    });
    await worker.start();
    await queue.enqueueMany(database.db, work, new Array(10).fill({}));
    await until(async () => (await database.db.$count(queueJobs)) === 0);
    isLong = true;
    // Two with attempts left; one whose first attempt ended silently; one on its last attempt.
    await database.db.transaction(async (tx) => {
      const jobs = await queue.enqueueMany(tx, work, [{}, {}, {}, {}]);
      await tx
        .update(queueJobs)
        .set({ attempt: 1 })
        .where(eq(queueJobs.id, jobs[2]?.id ?? 0));
      await tx
        .update(queueJobs)
        .set({ attempt: 2, errors: [{ attempt: 2, name: 'Error', message: 'second', at: '' }] })
        .where(eq(queueJobs.id, jobs[3]?.id ?? 0));
    });
    // What a crash would leave behind while two run and two wait: of those nothing is spent.
    const attempts = async () =>
      (await database.db.select().from(queueJobs).orderBy(queueJobs.id)).map(
        ({ attempt, workerId, claimedAt }) => [attempt, workerId !== null, claimedAt !== null],
      );
    const expected = JSON.stringify([
      [1, true, true],
      [1, true, true],
      [2, true, false],
      [3, true, false],
    ]);
    await until(async () => JSON.stringify(await attempts()) === expected, { intervalMs: 5 });
    expect(began).toBe(12);
    finish();
    await until(async () => (await database.db.$count(queueJobs)) === 0);
    await worker.stop();
  });
});
