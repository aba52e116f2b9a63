import { createQueue, createWorker, defineJob, handle, limitsIn, unvalidated } from 'drizzle-queue';
import * as control from 'drizzle-queue/schema/control';
import {
  afterEach,
  beforeAll,
  beforeEach,
  describe,
  expect,
  type MockInstance,
  onTestFinished,
  test,
  vi,
} from 'vitest';
import type { ClaimedJob } from '../../../src/core/queries/claim/claim-jobs.ts';
import { registerWorker } from '../../../src/core/queries/presence/register-worker.ts';
import { atFaultPoints } from '../../../src/core/sql/fault-point.ts';
import { Patience } from '../../../src/core/worker/begin/patience.ts';
import { mostTogether } from '../../../src/core/worker/begin/precious-attempt.ts';
import { clearTables, tables } from '../../queries/support/jobs.ts';
import { addControlTables } from '../../support/control-tables.ts';
import { gate } from '../../support/gate.ts';
import { useTestDatabase } from '../../support/test-database.ts';
import { until } from '../../support/until.ts';

describe('how many may begin together with a job', () => {
  const job = (attempt: number, maxAttempts: number, lastRecorded: number) =>
    ({
      attempt,
      maxAttempts,
      errors: lastRecorded === 0 ? [] : [{ attempt: lastRecorded, name: 'Error', message: 'no', at: '' }],
    }) as unknown as ClaimedJob;

  test('is fewer the more of its attempts have ended silently', () => {
    expect([1, 2, 3, 4, 5, 6].map((attempt) => mostTogether(job(attempt, 20, 0), 0))).toEqual([
      2_000, 2_000, 250, 31, 3, 1,
    ]);
    expect(mostTogether(job(6, 20, 5), 0)).toBe(2_000);
  });

  test('is fewer after a redrive, too, whose job has the errors of its attempts before', () => {
    expect([1, 2, 3, 4].map((attempt) => mostTogether(job(attempt, 20, 21), 0))).toEqual([
      2_000, 2_000, 250, 31,
    ]);
  });

  test('is one on the last attempt, where the one before has ended silently', () => {
    expect(mostTogether(job(1, 1, 0), 0)).toBe(2_000);
    expect(mostTogether(job(3, 3, 2), 0)).toBe(2_000);
    expect(mostTogether(job(2, 2, 0), 0)).toBe(1);
  });

  test('is one for sixteen others like it that have ended well', () => {
    const survivors = [15, 16, 31, 32, 1_600, 1_000_000];
    expect(survivors.map((count) => mostTogether(job(2, 2, 0), count))).toEqual([1, 1, 1, 2, 100, 2_000]);
    expect(mostTogether(job(3, 3, 0), 1_000_000)).toBe(250);
  });
});

describe('a worker whose jobs are on their last attempt', () => {
  const database = useTestDatabase({ max: 10 });
  const queue = createQueue();
  const once = defineJob('once', { queue: 'q', maxAttempts: 1 });
  const JOBS = 1_000;

  beforeAll(() => addControlTables(database));
  beforeEach(() => clearTables(database.client));
  afterEach(() => {
    atFaultPoints();
    vi.restoreAllMocks();
  });

  const enqueueJobs = (count: number) => queue.enqueueMany(database.db, once, new Array(count).fill({}));

  /** How many beginnings each statement has recorded. */
  const recordedBy = (sent: MockInstance<typeof database.client.unsafe>): number[] =>
    sent.mock.calls
      .filter(([text]) => text.includes('set claimed_at = least(j.claimed_at, statement_timestamp())'))
      .map(([, parameters]) => String(parameters?.find((value) => String(value).startsWith('{'))))
      .map((ids) => ids.split(',').length);

  const isEmpty = async () => (await database.client`select from queue_jobs limit 1`).length === 0;

  /** How often the jobs that have ended were claimed, in all. */
  async function claims(): Promise<number> {
    const [row] = await database.client<{ claims: number }[]>`
      select sum(fence - floor(extract(epoch from created_at) * 1000))::int as claims from queue_results where state = 'completed'`;
    return row?.claims ?? 0;
  }

  test('claims each of them once', async () => {
    // On a machine that has no time for half a second, what was claimed ahead would be given back.
    vi.spyOn(Patience.prototype, 'watch').mockImplementation(() => {});
    await enqueueJobs(JOBS);
    const ran = new Map<number, number>();
    const worker = createWorker(database.db, {
      queue,
      handlers: [handle(once, ({ job }) => void ran.set(job.id, (ran.get(job.id) ?? 0) + 1))],
    });
    await worker.start();
    await until(isEmpty);
    await worker.stop();
    expect(ran.size).toBe(JOBS);
    expect([...ran.values()].every((times) => times === 1)).toBe(true);
    expect(await claims()).toBe(JOBS);
  });

  test.each([
    ['no more than there are slots', 5, 400, 10],
    ['no more than a hundred where handlers are over at once', 0, JOBS * 8, 100],
  ])(
    'of those that have begun, and whose attempt a crash would spend, are not called: %s',
    async (_, ms, count, most) => {
      await enqueueJobs(count);
      const called = new Set<number>();
      let uncalled = 0;
      atFaultPoints(async (at) => {
        if (at !== 'begin: written' && at !== 'claim: answered') return;
        const rows = await database.client<{ id: number }[]>`
        select id::int from queue_jobs where claimed_at is not null`;
        uncalled = Math.max(uncalled, rows.filter(({ id }) => !called.has(id)).length);
      });
      const handlers = [
        handle(once, async ({ job }) => {
          called.add(job.id);
          if (ms > 0) await new Promise((resolve) => setTimeout(resolve, ms));
        }),
      ];
      const worker = createWorker(database.db, { queue, handlers });
      await worker.start();
      await until(isEmpty);
      await worker.stop();
      expect(called.size).toBe(count);
      expect(uncalled).toBeGreaterThan(1);
      expect(uncalled).toBeLessThanOrEqual(most);
    },
  );

  // A statement records a part of those that are left: what it leaves must not wait for a later claim's, either.
  test.each([110, 120, 130, 140, 150])(
    'waits for none that have begun with a later claim: %s before that',
    async (count) => {
      // What stands still for half a second would be given back.
      vi.spyOn(Patience.prototype, 'watch').mockImplementation(() => {});
      let called = 0;
      const worker = createWorker(database.db, { queue, handlers: [handle(once, () => void called++)] });
      onTestFinished(() => worker.stop());
      await worker.start();
      await enqueueJobs(10);
      await until(() => called === 10);
      const answer = gate();
      onTestFinished(() => answer.open());
      let isRecorded = false;
      atFaultPoints(async (point) => {
        if (point !== 'begin: written' || isRecorded) return;
        isRecorded = true;
        await answer.opened;
      });
      // A hundred of them begin with their claim, and a few are recorded after it.
      await enqueueJobs(count);
      await until(() => isRecorded);
      await enqueueJobs(50);
      await until(
        async () => (await database.client`select from queue_jobs where worker_id is null`).length === 0,
      );
      answer.open();
      await until(() => called === 60 + count);
    },
  );

  test('begins more and more together whose one other attempt died, as long as they end well', async () => {
    await enqueueJobs(JOBS);
    await database.client`update queue_jobs set attempt = 1, max_attempts = 2, fence = 1`;
    const sent = vi.spyOn(database.client, 'unsafe');
    let ran = 0;
    const worker = createWorker(database.db, { queue, handlers: [handle(once, () => void ran++)] });
    await worker.start();
    await until(isEmpty);
    await worker.stop();
    expect(ran).toBe(JOBS);
    // The first 32 alone, then one in sixteen of those before.
    const groups = recordedBy(sent);
    expect(groups.slice(0, 31)).toEqual(new Array(31).fill(1));
    expect(groups.length).toBeLessThan(JOBS / 5);
  });

  test('shares them with another, and neither runs one twice', async () => {
    // As above.
    vi.spyOn(Patience.prototype, 'watch').mockImplementation(() => {});
    await enqueueJobs(JOBS);
    const ran = new Map<number, number>();
    const [other] = await database.connect();
    if (other === undefined) throw new Error('no connection');
    const handlers = [handle(once, ({ job }) => void ran.set(job.id, (ran.get(job.id) ?? 0) + 1))];
    const workers = [database.db, other.db].map((db) => createWorker(db, { queue, handlers }));
    await Promise.all(workers.map((worker) => worker.start()));
    await until(isEmpty);
    await Promise.all(workers.map((worker) => worker.stop()));
    expect([...ran.values()]).toEqual(new Array(JOBS).fill(1));
    expect(await claims()).toBeLessThan(JOBS * 1.5);
  });

  test('says again what it does not know to be written', async () => {
    await enqueueJobs(200);
    let lost = 0;
    atFaultPoints(async (at) => {
      if (at !== 'begin: written' || ++lost > 3) return;
      throw new Error('the connection broke');
    });
    let ran = 0;
    const during: string[] = [];
    const worker = createWorker(database.db, { queue, handlers: [handle(once, () => void ran++)] });
    worker.on('error', (error) => during.push(error.during));
    await worker.start();
    await until(isEmpty);
    await worker.stop();
    expect(during).toHaveLength(3);
    for (const text of during) expect(text).toMatch(/^beginning \d+ jobs? of 'q'$/);
    expect(ran).toBe(200);
    expect((await database.client`select from queue_results where state = 'completed'`).length).toBe(200);
  });

  test('does not run those that it has lost before they began', async () => {
    await enqueueJobs(10);
    const other = await registerWorker(database.db, tables, { name: 'another', queues: ['q'] });
    let taken = 0;
    atFaultPoints(async (at) => {
      if (at !== 'claim: answered' || taken > 0) return;
      // As if another worker had taken over what has not begun.
      const rows = await database.client`
        update queue_jobs set worker_id = ${other}, fence = fence + 1
        where worker_id is not null and claimed_at is null returning id`;
      taken = rows.length;
    });
    let ran = 0;
    const lost = new Set<number>();
    const worker = createWorker(database.db, { queue, handlers: [handle(once, () => void ran++)] });
    worker.on('lost', ({ job }) => lost.add(job.id));
    await worker.start();
    await until(() => taken > 0 && lost.size === taken);
    await worker.stop();
    expect(ran).toBe(10 - taken);
    const rows = await database.client`select worker_id::int, attempt, claimed_at from queue_jobs`;
    expect([...rows]).toEqual(new Array(taken).fill({ worker_id: other, attempt: 1, claimed_at: null }));
  });

  test('gives back at its stop those of which it was just saying that they begin', async () => {
    await enqueueJobs(10);
    let finish = () => {};
    const finished = new Promise<void>((resolve) => {
      finish = resolve;
    });
    let ran = 0;
    const handlers = [
      handle(once, () => {
        ran++;
        return finished;
      }),
    ];
    const worker = createWorker(database.db, { queue, handlers });
    let stopping: Promise<void> | undefined;
    atFaultPoints(async (at) => {
      if (at !== 'begin: written' || stopping !== undefined) return;
      stopping = worker.stop();
      // The others that wait are given back before the answer is there.
      await until(
        async () => (await database.client`select from queue_jobs where worker_id is null`).length > 0,
      );
      finish();
    });
    await worker.start();
    await until(() => stopping !== undefined);
    await stopping;
    const left = await database.client`
      select attempt, worker_id is not null as held, claimed_at is not null as begun from queue_jobs`;
    expect(left.length).toBeGreaterThan(1);
    expect(left.length).toBe(10 - ran);
    for (const row of left) expect(row).toEqual({ attempt: 0, held: false, begun: false });
  });

  test('wait for none whose row a transaction of the app has locked', async () => {
    const [app] = await database.connect();
    if (app === undefined) throw new Error('no connection');
    await enqueueJobs(10);
    let locked = 0;
    atFaultPoints(async (at) => {
      if (at !== 'claim: answered' || locked > 0) return;
      const [row] = await database.client<{ id: number }[]>`
        select id::int from queue_jobs where worker_id is not null and claimed_at is null order by id limit 1`;
      if (row === undefined) return;
      locked = row.id;
      await app.client`begin`;
      await queue.cancel(app.db, locked, { reason: 'unwanted' });
    });
    let completed = 0;
    const cancelled: number[] = [];
    const errors: string[] = [];
    const worker = createWorker(database.db, {
      queue,
      queues: { q: { concurrency: 2 } },
      handlers: [handle(once, () => undefined)],
    });
    worker.on('completed', () => completed++);
    worker.on('cancelled', ({ job }) => cancelled.push(job.id));
    worker.on('error', ({ during }) => errors.push(during));
    await worker.start();
    await until(() => completed === 9);
    expect(cancelled).toEqual([]);
    await app.client`commit`;
    await until(() => cancelled.length > 0);
    expect(cancelled).toEqual([locked]);
    expect(errors).toEqual([]);
    await worker.stop();
  });

  test('wait for none whose beginning the database refuses, and that one keeps its attempt', async () => {
    await enqueueJobs(200);
    // After two deaths no claim begins them.
    await database.client`update queue_jobs set attempt = 2, max_attempts = 20`;
    const [bad] = await database.client<{ id: number }[]>`
      select id::int from queue_jobs order by id offset 100 limit 1`;
    await database.client.unsafe(`
      create function refuse() returns trigger language plpgsql as $$ begin
        if old.id = ${bad?.id} and old.worker_id = new.worker_id then raise exception 'no'; end if;
        return new;
      end $$`);
    await database.client`create trigger refuse before update on queue_jobs for each row execute function refuse()`;
    try {
      let completed = 0;
      const errors: string[] = [];
      const worker = createWorker(database.db, { queue, handlers: [handle(once, () => undefined)] });
      worker.on('completed', () => completed++);
      worker.on('error', ({ during }) => errors.push(during));
      await worker.start();
      await until(() => completed === 199 && errors.length > 0);
      await until(async () => {
        const [row] = await database.client`select attempt, worker_id from queue_jobs`;
        return row?.attempt === 2 && row.worker_id === null;
      });
      await worker.stop();
      expect(errors).toEqual([`beginning 1 job of 'q'`]);
    } finally {
      await database.client`drop function refuse() cascade`;
    }
  });

  test('and follow another of their group wait for none that have begun', async () => {
    // What stands still for half a second would be given back.
    vi.spyOn(Patience.prototype, 'watch').mockImplementation(() => {});
    const ordered = createQueue({ limits: limitsIn(control, { ordered: { groups: { serial: 'end' } } }) });
    const job = defineJob('ordered', {
      payload: unvalidated<string>(),
      queue: 'ordered',
      group: (group: string) => group,
    });
    const pairs = Array.from({ length: 20 }, (_, index) => [`group ${index}`, `group ${index}`]).flat();
    await ordered.enqueueMany(
      database.db,
      job,
      pairs.map((payload) => ({ payload })),
    );
    // After two deaths what is recorded must have been called before anything else is.
    await database.client`update queue_jobs set attempt = 2, max_attempts = 20`;
    const called: string[] = [];
    const handlers = [handle(job, ({ payload }) => void called.push(payload))];
    const worker = createWorker(database.db, { queue: ordered, handlers });
    onTestFinished(() => worker.stop());
    await worker.start();
    await until(() => called.length === pairs.length);
    expect(called.toSorted()).toEqual(pairs.toSorted());
  });
});
