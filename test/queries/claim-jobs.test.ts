import { randomBytes } from 'node:crypto';
import { beforeEach, describe, expect, test } from 'vitest';
import { claimJobs, sawTheEnd } from '../../src/core/queries/claim/claim-jobs.ts';
import { agedBands } from '../../src/core/worker/claim/aged-bands.ts';
import { useTestDatabase } from '../support/test-database.ts';
import {
  addJob,
  addJobs,
  claim,
  claimOf,
  clearTables,
  fillJobs,
  idsOf,
  jobRow,
  tables,
} from './support/jobs.ts';
import { begin, commit, rollback, twoBackends } from './support/locks.ts';

const database = useTestDatabase();

beforeEach(() => clearTables(database.client));

describe('which jobs, in which order', () => {
  test('by priority, then run_at, then id', async () => {
    const ids = await addJobs(database.client, [
      { priority: 9, dueInMs: -9000 },
      { priority: 5, dueInMs: -1000 },
      { priority: 5, dueInMs: -3000 },
      { priority: 0, dueInMs: -1 },
      { priority: 5, dueInMs: -3000 },
    ]);
    const inOrder = [3, 2, 4, 1, 0].map((place) => ids[place]);
    expect(idsOf(await claim(database.db, { limit: 2 }))).toEqual(inOrder.slice(0, 2));
    expect(idsOf(await claim(database.db, { limit: 10 }))).toEqual(inOrder.slice(2));
  });

  test('run_at counts to the microsecond, as it is stored', async () => {
    const [later, earlier] = await addJobs(database.client, [{ dueInMs: -10 }, { dueInMs: -10.5 }]);
    await database.client`update queue_jobs set run_at = date_trunc('second', run_at) - interval '1 s'`;
    await database.client`update queue_jobs set run_at = run_at + interval '7 us' where id = ${later}`;
    await database.client`update queue_jobs set run_at = run_at + interval '3 us' where id = ${earlier}`;
    expect(idsOf(await claim(database.db, { limit: 2 }))).toEqual([earlier, later]);
  });

  test('only of its queue, and only of the kinds asked for', async () => {
    const ids = await addJobs(database.client, [
      { queue: 'other' },
      { kind: 'other' },
      { kind: 'k' },
      { kind: `it's "odd"` },
    ]);
    expect(await claim(database.db, { limit: 10, kinds: [] })).toEqual([]);
    expect(idsOf(await claim(database.db, { limit: 10, kinds: ['k', `it's "odd"`] }))).toEqual(ids.slice(2));
  });

  test('not before run_at', async () => {
    await addJobs(database.client, [{ dueInMs: 60_000 }, { dueInMs: 60_000, priority: 0 }]);
    expect(await claim(database.db, { limit: 10 })).toEqual([]);
    await database.client`update queue_jobs set run_at = statement_timestamp()`;
    expect(await claim(database.db, { limit: 10 })).toHaveLength(2);
  });

  test('only of the bands asked for, and not below their floors', async () => {
    const [row] = await database.client<{ ms: number }[]>`
      select (extract(epoch from statement_timestamp()) * 1000)::float8 as ms`;
    const nowMs = Number(row?.ms);
    const [below, above, otherBand] = await addJobs(database.client, [
      { dueInMs: -60_000 },
      { dueInMs: -10_000 },
      { priority: 6 },
    ]);
    const bands = [{ priority: 5, floorMs: nowMs - 30_000 }];
    expect(idsOf(await claim(database.db, { limit: 10, bands }))).toEqual([above]);
    // A sweep is the same claim from the start.
    expect(idsOf(await claim(database.db, { limit: 10 }))).toEqual([below, otherBand]);
  });

  test('a floor includes its own run_at, although it was rounded to milliseconds', async () => {
    await addJobs(database.client, [{}, {}]);
    await database.client`update queue_jobs set run_at = date_trunc('second', run_at) + interval '1234 us'`;
    const [first] = await claim(database.db);
    const floorMs = Math.floor(first?.runAt.getTime() ?? 0);
    expect(await claim(database.db, { bands: [{ priority: 5, floorMs }] })).toHaveLength(1);
  });
});

describe('with bands that end', () => {
  /** Times of the database, so that they compare with those of the jobs. */
  async function nowMs(): Promise<number> {
    const [row] = await database.client<{ ms: number }[]>`
      select (extract(epoch from statement_timestamp()) * 1000)::float8 as ms`;
    return Math.floor(Number(row?.ms));
  }

  test('in the order of the bands: jobs of a priority by time, each once, the ceiling left out', async () => {
    const now = await nowMs();
    const [old9, old0, , young0] = await addJobs(database.client, [
      { priority: 9, dueInMs: -60_000 },
      { priority: 0, dueInMs: -40_000 },
      { priority: 9, dueInMs: -20_000 },
      { priority: 0, dueInMs: -1_000 },
      { priority: 5, dueInMs: -90_000 },
    ]);
    const bands = [
      { priority: 9, floorMs: Number.NEGATIVE_INFINITY, ceilingMs: now - 30_000 },
      { priority: 0, floorMs: Number.NEGATIVE_INFINITY },
    ];
    expect(idsOf(await claim(database.db, { limit: 10, bands }))).toEqual([old9, old0, young0]);
  });

  test('a job at the border is in one band only, to the microsecond', async () => {
    const [before, at] = await addJobs(database.client, [{}, {}]);
    const borderMs = Date.parse('2024-02-29T12:00:00Z');
    await database.client`
      update queue_jobs set run_at = ${new Date(borderMs).toISOString()}::timestamptz
        - case when id = ${before ?? 0} then interval '1 us' else interval '0' end`;
    const early = { priority: 5, floorMs: Number.NEGATIVE_INFINITY, ceilingMs: borderMs };
    const late = { priority: 5, floorMs: borderMs };
    expect(idsOf(await claim(database.db, { limit: 10, bands: [early] }))).toEqual([before]);
    expect(idsOf(await claim(database.db, { limit: 10, bands: [early, late] }))).toEqual([at]);
  });

  test('what payloads leave behind is what comes last in the order of the bands', async () => {
    const now = await nowMs();
    const payload = { text: randomBytes(3 * 1024 * 1024).toString('base64') };
    const [first0, second0, third0, old9] = await addJobs(database.client, [
      { priority: 0, payload, dueInMs: -300 },
      { priority: 0, payload, dueInMs: -200 },
      { priority: 0, payload, dueInMs: -100 },
      { priority: 9, payload, dueInMs: -60_000 },
    ]);
    const bands = [
      { priority: 9, floorMs: Number.NEGATIVE_INFINITY, ceilingMs: now - 30_000 },
      { priority: 0, floorMs: Number.NEGATIVE_INFINITY },
    ];
    const jobs = await claim(database.db, { limit: 10, bands });
    expect(sawTheEnd(10, jobs)).toBe(false);
    expect(idsOf(jobs).slice(0, 2)).toEqual([old9, first0]);
    const rest = await claim(database.db, { limit: 10, bands });
    expect(idsOf([...jobs, ...rest])).toEqual([old9, first0, second0, third0]);
  });

  test('the first in the order of the bands begins, the others with it do not', async () => {
    const now = await nowMs();
    await addJobs(database.client, [
      { priority: 0, maxAttempts: 1, dueInMs: -1_000 },
      { priority: 9, maxAttempts: 1, dueInMs: -60_000 },
    ]);
    const bands = [
      { priority: 9, floorMs: Number.NEGATIVE_INFINITY, ceilingMs: now - 30_000 },
      { priority: 0, floorMs: Number.NEGATIVE_INFINITY },
    ];
    const jobs = await claim(database.db, { limit: 10, bands, beginning: 1 });
    expect(jobs.map(({ priority, begun }) => [priority, begun])).toEqual([
      [9, true],
      [0, false],
    ]);
  });

  test('claims with different ceilings at once never take the same job, and together take all', async () => {
    await fillJobs(database.client, 3_000);
    await database.client`
      update queue_jobs set priority = id % 10, run_at = statement_timestamp() - id % 60 * interval '1 s'`;
    const backends = await database.connect(6);
    const now = await nowMs();
    const taken = await Promise.all(
      backends.map(async ({ db }, worker) => {
        const ids: number[] = [];
        for (;;) {
          const bands = agedBands(new Array(10).fill(now - 3_600_000), {
            afterMs: 1_000 + 700 * worker,
            nowMs: now + worker,
            limit: 7,
          });
          const jobs = await claim(db, { limit: 7, bands, workerId: worker + 1 });
          if (jobs.length === 0) return ids;
          ids.push(...idsOf(jobs));
        }
      }),
    );
    expect(taken.flat()).toHaveLength(3_000);
    expect(new Set(taken.flat()).size).toBe(3_000);
    const claims = await database.client`select distinct attempt from queue_jobs`;
    expect(claims).toEqual([{ attempt: 1 }]);
  });
});

describe('what a claim does to a job', () => {
  test('holds it: worker, time, and one more for fence and attempt; answers all of it', async () => {
    const errors = [{ attempt: 2, name: 'Error', message: 'x', at: '2024-01-01T00:00:00.000Z' }];
    const id = await addJob(database.client, {
      payload: { a: [1, 'ü'] },
      dueInMs: -3_600_000,
      priority: 3,
      attempt: 2,
      maxAttempts: 7,
      fence: 41,
      uniqueKey: 'once',
      errors,
      metadata: { tenant: 't' },
    });
    const before = await jobRow(database.client, id);
    const [job] = await claim(database.db, { workerId: 7 });
    const row = await jobRow(database.client, id);
    expect(row).toEqual({ ...before, attempt: 3, fence: 42, worker_id: 7, claimed_at: row?.claimed_at });
    expect(job).toEqual({
      id,
      queue: 'q',
      kind: 'k',
      payload: { a: [1, 'ü'] },
      payloadBytes: expect.any(Number),
      priority: 3,
      runAt: new Date(String(row?.run_at)),
      attempt: 3,
      maxAttempts: 7,
      begun: true,
      fence: 42,
      uniqueKey: 'once',
      errors,
      metadata: { tenant: 't' },
      createdAt: new Date(String(row?.created_at)),
      claimedAt: new Date(String(row?.claimed_at)),
      cancelReason: null,
    });
    const [age] = await database.client<{ s: number }[]>`
      select extract(epoch from clock_timestamp() - claimed_at)::float8 as s from queue_jobs`;
    expect(age?.s).toBeGreaterThanOrEqual(0);
    expect(age?.s).toBeLessThan(20);
  });

  test('whatever the session says about times and intervals', async () => {
    const [{ db }] = await twoBackends(database);
    await db.execute(`set timezone = 'Asia/Kathmandu'`);
    await db.execute(`set datestyle = 'SQL, DMY'`);
    await db.execute(`set intervalstyle = 'sql_standard'`);
    await db.execute('set extra_float_digits = 0');
    const id = await addJob(database.client);
    // Such a session rounds the microseconds, which a Date cuts off.
    await database.client`update queue_jobs set run_at = date_trunc('milliseconds', run_at) where id = ${id}`;
    const row = await jobRow(database.client, id);
    const floorMs = Date.parse(String(row?.run_at));
    const [job] = await claim(db, { bands: [{ priority: 5, floorMs }] });
    expect(job?.runAt).toEqual(new Date(String(row?.run_at)));
  });

  test('a held job is no longer due, and each claim raises the fence above all before it', async () => {
    const id = await addJob(database.client);
    const fences: unknown[] = [];
    for (let attempt = 1; attempt <= 3; attempt++) {
      const [job] = await claim(database.db);
      fences.push(job?.fence);
      expect(await claim(database.db)).toEqual([]);
      // As a snooze does: the attempt is given back, the fence is not.
      await database.client`update queue_jobs set worker_id = null, attempt = attempt - 1 where id = ${id}`;
    }
    expect(fences).toEqual([1, 2, 3]);
  });

  test('without a worker the lock is the hold: it ends with the transaction', async () => {
    const id = await addJob(database.client);
    const [one] = await twoBackends(database);
    await begin(one);
    expect(await claim(one.db, { workerId: null })).toMatchObject([{ id, fence: 1, attempt: 1 }]);
    expect(await claim(database.db)).toEqual([]);
    await rollback(one);
    expect(await claim(database.db)).toMatchObject([{ id, fence: 1, attempt: 1 }]);
  });
});

describe('jobs of workers that are gone', () => {
  test('are taken by a sweep only, and raise the fence; those of the living stay', async () => {
    const [alive] = await database.client<{ id: string }[]>`
      insert into queue_workers (name, queues) values ('w', '[]') returning id`;
    const livingId = Number(alive?.id);
    const [ofGone, ofLiving] = await addJobs(database.client, [
      { workerId: livingId + 1, fence: 5, attempt: 5 },
      { workerId: livingId, fence: 5 },
    ]);
    expect(await claim(database.db, { limit: 10 })).toEqual([]);
    const sweep = { limit: 10, fromGoneWorkers: true, workerId: livingId + 2 };
    expect(await claim(database.db, sweep)).toMatchObject([{ id: ofGone, fence: 6, attempt: 6 }]);
    expect(await claim(database.db, sweep)).toEqual([]);
    expect(await jobRow(database.client, ofLiving)).toMatchObject({ fence: 5, worker_id: livingId });
  });

  test('but never its own: a worker that was declared gone by mistake still runs them', async () => {
    const [own] = await addJobs(database.client, [{ workerId: 7, fence: 5 }, { workerId: 8 }]);
    const taken = await claim(database.db, { limit: 10, fromGoneWorkers: true, workerId: 7 });
    expect(taken).toHaveLength(1);
    expect(await jobRow(database.client, own)).toMatchObject({ fence: 5, worker_id: 7 });
    // A hold by lock belongs to no worker, so it takes them all.
    expect(idsOf(await claim(database.db, { limit: 10, fromGoneWorkers: true, workerId: null }))).toContain(
      own,
    );
  });

  test('two sweeps at once share none of them', async () => {
    await addJobs(
      database.client,
      Array.from({ length: 40 }, () => ({ workerId: 999 })),
    );
    const [one, two] = await twoBackends(database);
    await begin(one);
    const first = await claim(one.db, { limit: 25, fromGoneWorkers: true });
    const second = await claim(two.db, { limit: 25, fromGoneWorkers: true });
    await commit(one);
    expect(first).toHaveLength(25);
    expect(second).toHaveLength(15);
    expect(new Set(idsOf([...first, ...second])).size).toBe(40);
  });
});

describe('two claims at once', () => {
  test('a claim skips what an open claim has locked, without waiting for it', async () => {
    const ids = await addJobs(database.client, [{}, {}, {}]);
    const [one, two] = await twoBackends(database);
    await begin(one);
    expect(idsOf(await claim(one.db, { limit: 2 }))).toEqual(ids.slice(0, 2));
    // Would wait for ever if it waited: nobody ends the other transaction meanwhile.
    expect(idsOf(await claim(two.db, { limit: 2 }))).toEqual(ids.slice(2));
    await commit(one);
    expect(await claim(two.db, { limit: 2 })).toEqual([]);
  });

  test('a claim that began before the other one ended does not take its jobs', async () => {
    const ids = await addJobs(database.client, [{}, {}]);
    const [one, two] = await twoBackends(database);
    // The snapshot of `two` is older than the claim of `one`, as it is for a moment in every race.
    await begin(two, 'repeatable read');
    expect(await two.client`select count(*)::int as n from queue_jobs where worker_id is null`).toEqual([
      { n: 2 },
    ]);
    expect(idsOf(await claim(one.db))).toEqual(ids.slice(0, 1));
    // Under REPEATABLE READ Postgres refuses; a claim never answers a job that is held.
    await expect(claim(two.db, { limit: 2 })).rejects.toMatchObject({ cause: { code: '40001' } });
    await rollback(two);
    expect(idsOf(await claim(two.db, { limit: 2 }))).toEqual(ids.slice(1));
  });

  test('8 connections that claim at once give every job to exactly one of them', async () => {
    const JOBS = 4_000;
    await fillJobs(database.client, JOBS);
    const connections = await database.connect(8);
    const claimed = await Promise.all(
      connections.map(async ({ db }, index) => {
        const ids: number[] = [];
        for (let empty = 0; empty < 2; ) {
          // Different sizes, so that the claims do not fall into step.
          const jobs = await claim(db, { limit: 1 + index * 3, workerId: index + 1 });
          ids.push(...idsOf(jobs));
          empty = jobs.length === 0 ? empty + 1 : 0;
        }
        return ids;
      }),
    );
    expect(claimed.flat()).toHaveLength(JOBS);
    expect(new Set(claimed.flat()).size).toBe(JOBS);
    const [row] = await database.client`
      select count(*)::int as held, max(attempt) as attempt from queue_jobs where worker_id is not null`;
    expect(row).toEqual({ held: JOBS, attempt: 1 });
  });

  test('a claim does not block rows that refer to the job by a foreign key', async () => {
    await database.client`
      create table notes (job_id bigint, queue text, foreign key (job_id, queue) references queue_jobs (id, queue))`;
    const id = await addJob(database.client);
    const [one, two] = await twoBackends(database);
    await begin(one);
    await claim(one.db);
    await two.client`insert into notes values (${id}, 'q')`;
    await commit(one);
    await database.client`drop table notes`;
  });
});

describe('never more than the limit', () => {
  test.each([1, 7, 250])('of %i, over all priorities together', async (limit) => {
    await database.client`
      insert into queue_jobs (queue, kind, payload, max_attempts, priority)
      select 'q', 'k', 'null', 20, n % 10 from generate_series(1, 1000) as n`;
    const priorities = (await claim(database.db, { limit })).map(({ priority }) => priority);
    expect(priorities).toEqual(Array.from({ length: limit }, (_, place) => Math.floor(place / 100)));
    const [row] = await database.client`select count(*)::int as held from queue_jobs where worker_id = 1`;
    expect(row).toEqual({ held: limit });
  });

  const statistics = {
    'that were never gathered': async () => {
      await fillJobs(database.client, 400);
    },
    'from when the table was empty': async () => {
      await database.client`analyze queue_jobs`;
      await fillJobs(database.client, 400);
    },
    'from when there was one job, of another queue': async () => {
      await fillJobs(database.client, 1, 'other');
      await database.client`analyze queue_jobs`;
      await fillJobs(database.client, 400);
    },
    'from when there were many more': async () => {
      await fillJobs(database.client, 20_000);
      await database.client`analyze queue_jobs`;
      await database.client`delete from queue_jobs where id > (select min(id) + 400 from queue_jobs)`;
    },
  };

  // Without hashing and merging the planner repeats a subselect per row if it may.
  test.each(Object.keys(statistics))('with statistics %s', async (when) => {
    await database.client`alter table queue_jobs set (autovacuum_enabled = off)`;
    await statistics[when as keyof typeof statistics]();
    const [{ db, client }] = await twoBackends(database);
    for (const planner of ['on', 'off']) {
      for (const method of ['hashagg', 'hashjoin', 'mergejoin', 'material', 'sort']) {
        await client.unsafe(`set enable_${method} = ${planner}`);
      }
      for (let round = 0; round < 5; round++) {
        expect(await claimJobs(db, tables, claimOf())).toHaveLength(1);
        expect(await claimJobs(db, tables, claimOf({ limit: 3, fromGoneWorkers: true }))).toHaveLength(3);
      }
    }
    const [row] = await database.client`select count(*)::int as held from queue_jobs where worker_id = 1`;
    expect(row).toEqual({ held: 40 });
  });
});

describe('large payloads', () => {
  /** Text that does not compress. */
  const megabytes = (count: number) => randomBytes(count * 768 * 1024).toString('base64');

  test('end a claim above 8 MB', async () => {
    await addJobs(
      database.client,
      Array.from({ length: 4 }, () => ({ payload: megabytes(3) })),
    );
    const first = await claim(database.db, { limit: 100 });
    // The third begins below the limit, and ends above it.
    expect(first).toHaveLength(3);
    for (const { payloadBytes } of first) expect(payloadBytes).toBeGreaterThan(3 * 1024 * 1024);
    expect(sawTheEnd(100, first)).toBe(false);
    const rest = await claim(database.db, { limit: 100 });
    expect(rest).toHaveLength(1);
    expect(sawTheEnd(100, rest)).toBe(true);
    expect(sawTheEnd(1, rest)).toBe(false);
  });

  test('are claimed all the same, one by one', async () => {
    await addJobs(
      database.client,
      Array.from({ length: 2 }, () => ({ payload: megabytes(9) })),
    );
    expect(await claim(database.db, { limit: 2 })).toHaveLength(1);
    expect(await claim(database.db, { limit: 2 })).toHaveLength(1);
  });
});

test('what the driver has answered is emptied, so that no old promise of it keeps the rows', async () => {
  await addJobs(database.client, [{}, {}]);
  const answers: unknown[][] = [];
  const db = {
    async execute(...sent: Parameters<typeof database.db.execute>) {
      const rows: unknown[] = await database.db.execute(...sent);
      answers.push(rows);
      return rows;
    },
  };
  const jobs = await claimJobs(db, tables, claimOf({ limit: 5 }));
  expect(jobs.map(({ queue, attempt }) => ({ queue, attempt }))).toEqual([
    { queue: 'q', attempt: 1 },
    { queue: 'q', attempt: 1 },
  ]);
  expect(answers).toEqual([[]]);
});
