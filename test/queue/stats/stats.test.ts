import { sql } from 'drizzle-orm';
import { createQueue, createWorker, defineJob, drain, handle, unvalidated } from 'drizzle-queue';
import { queueMetrics } from 'drizzle-queue/schema/metrics';
import { afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import { tables } from '../../queries/support/jobs.ts';
import { addMetricsTable } from '../../support/control-tables.ts';
import { emptyTables } from '../../support/empty-tables.ts';
import { useTestDatabase } from '../../support/test-database.ts';
import { until } from '../../support/until.ts';

const database = useTestDatabase();
const mail = defineJob('mail', { payload: unvalidated<number>(), queue: 'mail', maxAttempts: 2 });
const report = defineJob('report', { queue: 'reports' });

beforeAll(async () => {
  await addMetricsTable(database);
});

afterEach(async () => {
  await emptyTables(
    database.client,
    'queue_jobs',
    'queue_results',
    'queue_workers',
    'queue_pauses',
    'queue_metrics',
  );
});

/** Each has figures of its own: those of another may be older. */
const newQueue = () => createQueue({ metrics: queueMetrics });

describe('what there is to do', () => {
  test('is counted by queue and kind, with the age of the oldest due job', async () => {
    const queue = newQueue();
    const ago = new Date(Date.now() - 90_000);
    await queue.enqueueMany(database.db, mail, [
      { payload: 1, runAt: ago },
      { payload: 2 },
      { payload: 3, delayMs: 60_000 },
    ]);
    await queue.enqueue(database.db, report, undefined);
    await database.client`update queue_jobs set run_at = 'infinity' where kind = 'report'`;
    await queue.pause(database.db, 'reports');
    await database.client`insert into queue_workers (name, queues, kinds) values ('w', '["mail", "idle"]', '["mail"]')`;
    await database.client`update queue_jobs set worker_id = 1, claimed_at = now() where payload = '2'`;

    const stats = await queue.stats(database.db);

    expect(stats.estimated).toBe(false);
    expect(stats.queues).toMatchObject([
      { queue: 'idle', due: 0, workers: 1, precision: 'exact', oldestDueMs: undefined },
      { queue: 'mail', due: 1, running: 1, scheduled: 1, waiting: 0, workers: 1, pausedAt: undefined },
      { queue: 'reports', due: 0, waiting: 1, workers: 0, pausedAt: expect.any(Date) },
    ]);
    expect(stats.kinds).toMatchObject([
      { queue: 'mail', kind: 'mail', due: 1, workers: 1, discarded: 0 },
      { queue: 'reports', kind: 'report', waiting: 1, workers: 0 },
    ]);
    const [, ofMail] = stats.queues;
    expect(ofMail?.oldestDueMs).toBeGreaterThanOrEqual(90_000);
    expect(ofMail?.oldestDueMs).toBeLessThan(150_000);
    expect(stats.countedAt).toBeInstanceOf(Date);
    expect(stats.rates).toMatchObject({ minutes: 15, kinds: [], timeline: [] });
  });

  test('counts discarded jobs among the newest results', async () => {
    const queue = newQueue();
    await database.client`
      insert into queue_results (job_id, queue, kind, state, payload, errors, attempt, max_attempts, priority,
        fence, metadata, created_at, run_at)
      select i, 'mail', 'mail', case when i % 4 = 0 then 'discarded' else 'completed' end, '{}', '[]', 1, 1, 5,
        1, '{}', now(), now() from generate_series(1, 20) as i`;
    const { kinds, results } = await queue.stats(database.db);
    expect(kinds).toMatchObject([{ queue: 'mail', kind: 'mail', discarded: 5, due: 0 }]);
    expect(results).toMatchObject({ read: 20, truncated: false, since: expect.any(Date) });
  });

  test('says of a worker without kinds that it serves all of its queues', async () => {
    const queue = newQueue();
    await queue.enqueue(database.db, report, undefined);
    await database.client`insert into queue_workers (name, queues) values ('old', '["reports"]')`;
    expect((await queue.stats(database.db)).kinds).toMatchObject([{ kind: 'report', workers: 1 }]);
  });
});

describe('its cost', () => {
  test('is that of one count, however many ask', async () => {
    const queue = newQueue();
    let transactions = 0;
    const db = Object.create(database.db, {
      transaction: {
        value: (run: never) => {
          transactions++;
          return database.db.transaction(run);
        },
      },
    }) as typeof database.db;
    const answers = await Promise.all(Array.from({ length: 100 }, () => queue.stats(db)));
    const again = await queue.stats(db);
    // The workers and pauses, the results, the live jobs, those that are tried again, and the rates.
    expect(transactions).toBe(5);
    expect(new Set([...answers, again].map(({ countedAt }) => countedAt.getTime())).size).toBe(1);
  });

  test('is that of what it reads, however long it has waited: few jobs are counted again within seconds', async () => {
    const queue = newQueue();
    const [holder, asker] = await database.connect(2);
    if (holder === undefined || asker === undefined) throw new Error('two were opened');
    await queue.enqueue(database.db, report, undefined);
    const real = performance.now.bind(performance);
    let skippedMs = 0;
    const clock = vi.spyOn(performance, 'now').mockImplementation(() => real() + skippedMs);
    try {
      let first: Promise<unknown> = Promise.resolve();
      await holder.client.begin(async (tx) => {
        await tx`lock table queue_pauses in access exclusive mode`;
        first = queue.stats(asker.db);
        await until(async () => {
          const [row] = await database.client`
            select count(*)::int as waiting from pg_locks where relation = 'queue_pauses'::regclass and not granted`;
          return row?.waiting === 1;
        });
        skippedMs += 60_000;
      });
      await first;
      await queue.enqueue(database.db, report, undefined);
      skippedMs += 20_000;
      expect((await queue.stats(asker.db)).queues).toMatchObject([{ queue: 'reports', due: 2 }]);
    } finally {
      clock.mockRestore();
    }
  });

  test('is nothing that the database must rest from, when it has waited for a lock in vain', async () => {
    const queue = newQueue();
    const [holder, asker] = await database.connect(2);
    if (holder === undefined || asker === undefined) throw new Error('two were opened');
    await database.client`insert into queue_workers (name, queues, kinds) values ('w', '["mail"]', '["mail"]')`;
    await queue.enqueue(database.db, report, undefined);
    const real = performance.now.bind(performance);
    let skippedMs = 0;
    const clock = vi.spyOn(performance, 'now').mockImplementation(() => real() + skippedMs);
    try {
      await holder.client.begin(async (tx) => {
        await tx`lock table queue_results in access exclusive mode`;
        const { workers, queues } = await queue.stats(asker.db);
        expect(workers).toBe(1);
        expect(queues).toMatchObject([
          { queue: 'mail', workers: 1 },
          { queue: 'reports', due: 1 },
        ]);
      });
      await queue.enqueue(database.db, report, undefined);
      skippedMs += 20_000;
      expect((await queue.stats(asker.db)).queues).toMatchObject([{}, { queue: 'reports', due: 2 }]);
    } finally {
      clock.mockRestore();
    }
  });

  test('leaves no time limit behind on the connection, and gives a transaction its own back', async () => {
    const [connection] = await database.connect();
    if (connection === undefined) throw new Error('there is no connection');
    await newQueue().stats(connection.db);
    expect(await connection.client`show statement_timeout`).toMatchObject([{ statement_timeout: '0' }]);
    await connection.db.transaction(async (tx) => {
      await tx.execute(sql`set local statement_timeout = '7s'`);
      await newQueue().stats(tx);
      expect(await tx.execute(sql`show statement_timeout`)).toMatchObject([{ statement_timeout: '7s' }]);
    });
  });

  test('is bounded while the table is locked: the counts are unknown', { timeout: 240_000 }, async () => {
    const queue = newQueue();
    await database.client`insert into queue_workers (name, queues, kinds) values ('w', '["mail"]', '["mail"]')`;
    const [locker] = await database.connect();
    if (locker === undefined) throw new Error('there is no connection');
    await locker.db.transaction(async (tx) => {
      await tx.execute(sql`lock table queue_jobs in access exclusive mode`);
      const stats = await queue.stats(database.db);
      expect(stats.estimated).toBe(true);
      expect(stats.queues).toMatchObject([{ queue: 'mail', precision: 'unknown', workers: 1 }]);
      const { severity, vitals } = await queue.vitals(database.db);
      expect(severity).not.toBe('ok');
      expect(vitals.find(({ code }) => code === 'oldest-due')?.severity).toBe('unknown');
    });
  });

  test('refuses what is no number of minutes, and what is no database', async () => {
    const queue = newQueue();
    await expect(queue.stats(database.db, { minutes: 0 })).rejects.toThrow(/stats: minutes/);
    await expect(queue.stats(database.db, { minute: 5 } as object)).rejects.toThrow(/stats: unknown option/);
    await expect(queue.stats(undefined as never)).rejects.toThrow(TypeError);
    await expect(queue.vitals({} as never)).rejects.toThrow(TypeError);
  });
});

describe('what workers did', () => {
  test('is reported at the stop, with how long jobs waited and ran', { timeout: 240_000 }, async () => {
    const queue = newQueue();
    const ended: string[] = [];
    const worker = createWorker(database.db, {
      queue,
      handlers: [
        handle(mail, ({ payload, job }) => {
          if (payload === 2 || (payload === 3 && job.attempt === 1)) throw new Error('no');
        }),
      ],
      listen: false,
    });
    worker.on('completed', () => ended.push('completed'));
    worker.on('failed', () => ended.push('failed'));
    await worker.start();
    await queue.enqueueMany(database.db, mail, [{ payload: 1 }, { payload: 2 }, { payload: 3 }]);
    await until(async () => {
      await database.client`update queue_jobs set run_at = now() where worker_id is null and run_at > now()`;
      return ended.length === 5;
    });
    expect(await database.client`select kinds from queue_workers`).toMatchObject([{ kinds: ['mail'] }]);
    await worker.stop();

    // One report, or two where a minute ended meanwhile.
    const [sums] = await database.client`
      select sum(completed)::int as completed, sum(retried)::int as retried, sum(discarded)::int as discarded
      from queue_metrics where queue = 'mail' and kind = 'mail'`;
    expect(sums).toEqual({ completed: 2, retried: 2, discarded: 1 });
    const { rates } = await queue.stats(database.db);
    expect(rates?.kinds).toMatchObject([
      { completed: 2, retried: 2, discarded: 1, perMinute: 5 / 15, run: { count: 5 }, wait: { count: 5 } },
    ]);
    expect(rates?.timeline.reduce((sum, { completed }) => sum + completed, 0)).toBe(2);
    const [discarded] = await database.db.select().from(tables.queueResults).where(sql`state = 'discarded'`);
    const startedAt = discarded?.errors.map((error) => Date.parse(error.startedAt ?? ''));
    const at = discarded?.errors.map((error) => Date.parse(error.at));
    expect(startedAt?.every((time, index) => time > 0 && time <= (at?.[index] ?? 0) + 1)).toBe(true);
  });

  test('is not reported by a worker that is told not to, nor where the queue has no metrics', async () => {
    for (const [queue, metrics] of [[newQueue(), false] as const, [createQueue(), true] as const]) {
      const worker = createWorker(database.db, {
        queue,
        handlers: [handle(mail, () => undefined)],
        listen: false,
        metrics,
      });
      await worker.start();
      await queue.enqueue(database.db, mail, 1);
      await until(async () => (await database.client`select from queue_jobs`).length === 0);
      await worker.stop();
    }
    expect(await database.client`select from queue_metrics`).toHaveLength(0);
  });
});

test('where only drains run, each adds up what is over and prunes what is old', async () => {
  const queue = newQueue();
  const handlers = [handle(report, () => undefined)];
  const run = async () => {
    await queue.enqueue(database.db, report);
    await drain(database.db, { queue, log: false, handlers, deadlineMs: 60_000 });
  };
  await run();
  await database.client`update queue_metrics set at = at - interval '3 days'`;
  await run();
  await run();
  // The old report is now an hour; those of the last two drains are kept.
  const rows = await database.client`select minutes::int from queue_metrics order by minutes`;
  expect(rows.map(({ minutes }) => minutes)).toEqual([1, 1, 60]);
});
