import { randomBytes } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { createQueue, createWorker, defineJob, drain, handle, runNext, unvalidated } from 'drizzle-queue';
import { describe, expect, onTestFinished, test } from 'vitest';
import { useTestDatabase } from '../../support/test-database.ts';
import { until } from '../../support/until.ts';

const database = useTestDatabase({ max: 20 });
const queue = createQueue({ maxPayloadBytes: 8 * 1024 * 1024 });
const work = defineJob('work', { payload: unvalidated<string>() });

const AFTER = 200;
/** A claim's own time, and how far the worker's idea of the database's clock may be behind it. */
const LEEWAY = 500;

interface Stream {
  readonly queue: string;
  readonly concurrency: number;
  readonly workers: number;
  readonly afterMs: number | undefined;
  /** How long a handler takes. */
  readonly takesMs: number;
  readonly payload?: string;
}

interface Began {
  readonly priority: number;
  readonly runAtMs: number;
}

/**
 * Lets workers run jobs of priority 0 of which there are always more than they can take, with one job of each
 * other priority among them. Answers what has begun, in order, `forMs` later or when all of those have.
 */
async function beginnings(stream: Stream, forMs: number): Promise<Began[]> {
  const { concurrency, workers, afterMs, takesMs, payload = '' } = stream;
  const began: Began[] = [];
  let waiting = 0;
  const handlers = [
    handle(work, async ({ job }) => {
      began.push({ priority: job.priority, runAtMs: job.runAt.getTime() });
      await delay(takesMs);
    }),
  ];
  const over = new AbortController();
  onTestFinished(() => over.abort());
  const ahead = Math.ceil((concurrency * 50) / takesMs);
  const enough = payload === '' ? 2 * workers * (concurrency + ahead) + 10 : 12;
  const producing = (async () => {
    while (!over.signal.aborted) {
      if (waiting < enough) {
        waiting += enough;
        const entries = Array.from({ length: enough }, () => ({ payload, priority: 0, queue: stream.queue }));
        await queue.enqueueMany(database.db, work, entries);
      }
      await delay(2);
    }
  })();
  await until(() => waiting > 0);
  const others = Array.from({ length: 9 }, (_, n) => ({ payload, priority: n + 1, queue: stream.queue }));
  const running = Array.from({ length: workers }, () =>
    createWorker(database.db, {
      queue,
      handlers,
      queues: { [stream.queue]: { concurrency, aging: afterMs === undefined ? undefined : { afterMs } } },
    }).on('claimed', ({ count }) => {
      waiting -= count;
    }),
  );
  for (const worker of running) onTestFinished(() => worker.stop());
  await Promise.all(running.map((worker) => worker.start()));
  await until(() => began.length > 2 * concurrency);
  await queue.enqueueMany(database.db, work, others);
  const startMs = performance.now();
  const left = () => 9 - began.filter(({ priority }) => priority > 0).length;
  await until(() => left() === 0 || performance.now() - startMs > forMs, { timeoutMs: forMs + 5_000 });
  const answer = [...began];
  over.abort();
  await producing;
  await Promise.all(running.map((worker) => worker.stop()));
  return answer;
}

describe('beside an endless stream of priority 0', () => {
  const streams: readonly Stream[] = [
    { queue: 'one', concurrency: 1, workers: 1, afterMs: AFTER, takesMs: 10 },
    { queue: 'ten', concurrency: 10, workers: 1, afterMs: AFTER, takesMs: 20 },
    { queue: 'two workers', concurrency: 10, workers: 2, afterMs: AFTER, takesMs: 20 },
    { queue: 'fifty', concurrency: 50, workers: 1, afterMs: AFTER, takesMs: 50 },
    {
      queue: 'large payloads',
      concurrency: 10,
      workers: 1,
      afterMs: AFTER,
      takesMs: 100,
      // Five fill a claim.
      payload: randomBytes(1_500_000).toString('base64'),
    },
  ];

  describe.each(streams)('$queue', (stream) => {
    test('each priority begins, and waits for nothing that came much later', {
      timeout: 240_000,
    }, async () => {
      const began = await beginnings(stream, 20_000);
      for (let priority = 1; priority <= 9; priority++) {
        const at = began.findIndex((job) => job.priority === priority);
        const runAtMs = began[at]?.runAtMs ?? Number.NaN;
        const before = began.slice(0, at).filter((job) => job.priority === 0);
        const latestMs = Math.max(...before.map((job) => job.runAtMs));
        expect(latestMs - runAtMs).toBeLessThan(priority * AFTER + LEEWAY);
      }
      // The more urgent the sooner, as all became due together; two workers may begin two of them at once.
      if (stream.workers > 1) return;
      const order = began.flatMap(({ priority }) => (priority > 0 ? [priority] : []));
      expect(order).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9]);
    });
  });

  test('without aging none of them begins', async () => {
    const stream = { queue: 'plain', concurrency: 10, workers: 1, afterMs: undefined, takesMs: 20 };
    const began = await beginnings(stream, 10 * AFTER);
    expect(began.length).toBeGreaterThan(100);
    expect(began.filter(({ priority }) => priority > 0)).toEqual([]);
  });
});

/** Jobs of an age from which none counts as another priority before the test is over. */
async function enqueueAged(queueName: string, count: number) {
  const now = Date.now();
  const jobs = Array.from({ length: count }, (_, n) => {
    const ages = ((n * 7) % 12) + 0.3 + ((n * 13) % 10) / 50;
    const priority = (n * 3 + Math.floor(n / 10)) % 10;
    const as = Math.max(0, priority - Math.floor(ages));
    return { n, priority, ages: Math.floor(ages), runAtMs: now - Math.round(ages * MINUTE), as };
  });
  const entries = jobs.map(({ n, priority, runAtMs }) => entry(queueName, n, priority, now - runAtMs));
  await queue.enqueueMany(database.db, work, entries);
  return jobs;
}

const MINUTE = 60_000;

const entry = (queueName: string, n: number, priority: number, ageMs: number) => ({
  payload: String(n),
  queue: queueName,
  priority,
  runAt: new Date(Date.now() - ageMs),
});

/** The numbers of the jobs in the order in which one slot begins them. */
async function drained(queueName: string): Promise<number[]> {
  const began: number[] = [];
  await drain(database.db, {
    queue,
    queues: { [queueName]: { concurrency: 1, aging: { afterMs: MINUTE } } },
    handlers: [handle(work, ({ payload }) => void began.push(Number(payload)))],
    deadlineMs: 30_000,
  });
  return began;
}

test('drain begins jobs by the priority that they count as, and by age among those that count as the same', async () => {
  const jobs = await enqueueAged('drained', 400);
  const began = await drained('drained');
  expect(began).toHaveLength(jobs.length);
  // The first claims do not know yet where each priority begins.
  const known = began.flatMap((n) => jobs[n] ?? []).slice(10);
  expect(known.map(({ as }) => as)).toEqual(known.map(({ as }) => as).sort());
  for (let priority = 0; priority <= 9; priority++) {
    const as = known.filter((job) => job.as === priority);
    // Of those that count as 0 by the minute, in each of which the more urgent come first.
    const inOrder = as.toSorted((a, b) =>
      priority > 0 ? a.runAtMs - b.runAtMs || a.n - b.n : Math.min(b.ages, 9) - Math.min(a.ages, 9),
    );
    if (priority > 0) expect(as).toEqual(inOrder);
    else
      expect(as.map(({ ages }) => Math.min(ages, 9))).toEqual(inOrder.map(({ ages }) => Math.min(ages, 9)));
  }
});

test('a heap of old jobs of priority 9 does not go before an older one of priority 0', async () => {
  const heap = Array.from({ length: 300 }, (_, n) => entry('heap', n, 9, 20 * MINUTE - n));
  const urgent = [30, 15, 1].map((minutes) => entry('heap', -minutes, 0, minutes * MINUTE));
  await queue.enqueueMany(database.db, work, [...heap, ...urgent]);
  const began = await drained('heap');
  expect(began.slice(0, 10)).toContain(-30);
  // What is younger by more than a minute waits, as it would behind others of its own priority.
  expect(began.slice(-2)).toEqual([-15, -1]);
});

test('what lies behind the floors ages, too', async () => {
  const began: number[] = [];
  const worker = createWorker(database.db, {
    queue,
    queues: { late: { concurrency: 1, aging: { afterMs: MINUTE } } },
    handlers: [
      handle(work, async ({ payload }) => {
        began.push(Number(payload));
        await delay(5);
      }),
    ],
  });
  onTestFinished(() => worker.stop());
  await worker.start();
  await queue.enqueueMany(database.db, work, [entry('late', -1, 0, 0)]);
  await until(() => began.length === 1);
  // A backlog that takes a while, and jobs with times that claims have passed.
  const backlog = Array.from({ length: 500 }, (_, n) => entry('late', n, 1, 0));
  await queue.enqueueMany(database.db, work, backlog);
  await until(() => began.length > 10);
  await queue.enqueueMany(database.db, work, [
    entry('late', -7, 9, 2.5 * MINUTE),
    entry('late', -8, 9, 9.5 * MINUTE),
    entry('late', -9, 9, 11.5 * MINUTE),
  ]);
  await until(() => began.length === 504);
  const [at9, at8, at7] = [-9, -8, -7].map((n) => began.indexOf(n));
  expect(at9).toBeLessThan(at8 ?? 0);
  expect(at8).toBeLessThan(400);
  // It counts as 7, and those before it as 1.
  expect(at7).toBe(503);
});

test('runNext goes by priority alone, whatever the age', async () => {
  await queue.enqueueMany(database.db, work, [entry('next', 9, 9, 24 * 60 * MINUTE), entry('next', 0, 0, 0)]);
  const options = { queue, queues: ['next'], handlers: [handle(work, () => {})] };
  expect(await runNext(database.db, options)).toMatchObject({ job: { payload: '0' } });
  expect(await runNext(database.db, options)).toMatchObject({ job: { payload: '9' } });
});
