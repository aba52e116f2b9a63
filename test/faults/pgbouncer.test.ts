import { drizzle as drizzleNodePostgres } from 'drizzle-orm/node-postgres';
import { drizzle as drizzlePostgresJs } from 'drizzle-orm/postgres-js';
import { createQueue, createWorker, defineJob, handle, unvalidated } from 'drizzle-queue';
import pg from 'pg';
import postgres from 'postgres';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { until } from '../support/until.ts';
import { transactional } from './fixtures/ledger-jobs.ts';
import type { StartOptions } from './fleet.ts';
import { declaredGone, violations } from './invariants.ts';
import { Load } from './load.ts';
import { hasPgBouncer, type PgBouncer, startPgBouncer } from './pgbouncer.ts';
import { print, printTimes, recoveryTimes, resumeTimes, startRespiteIsOver } from './recovery.ts';
import { monotonicMs } from './run-log.ts';
import { useStage } from './stage.ts';

const queue = createQueue();
const work = defineJob('work', { payload: unvalidated<string>() });

const installed = hasPgBouncer();
if (!installed)
  print('PgBouncer is not installed, so nothing is tested behind it: apt-get install pgbouncer');

describe.skipIf(!installed)('behind PgBouncer in transaction mode', () => {
  const stage = useStage();
  let pgBouncer: PgBouncer;
  beforeAll(async () => {
    // Fewer connections than clients have, so that each transaction may get another.
    pgBouncer = await startPgBouncer(stage.url, 4);
  });
  afterAll(() => pgBouncer.stop());

  test.each([
    ['a worker that was told not to listen', { worker: { listen: false } }],
    ['a worker with the default options', {}],
    [
      'a worker on postgres.js that prepares nothing',
      { driver: 'postgres.js', prepare: false, worker: { listen: false } },
    ],
  ] satisfies [string, StartOptions][])(
    '%s works by polling, and the jobs of a dead one begin elsewhere within 35 s',
    {
      timeout: 180_000,
    },
    async (name, options) => {
      const { ledger, fleet } = stage;
      const url = pgBouncer.url(stage.url);
      const workers = await fleet.startMany(3, { url, ...options });
      // More than one worker can do: one that keeps up takes each job before the others look again.
      const load = new Load(ledger, { maxWorkMs: 600 });
      await resumeTimes(fleet, workers, 0);
      await ledger.enqueue(
        Array.from({ length: 60 }, () => ({ job: transactional, work: { workMs: 2_000 } })),
      );
      // Four connections serve everybody, so this may take a while.
      const victim = await until(async () => {
        for (const worker of workers) {
          if ((await ledger.heldBy(worker.workerId)).length >= 3) return worker;
        }
        return undefined;
      });
      if (victim === undefined) throw new Error('nobody holds three jobs');
      const killedAtMs = await victim.kill();
      const held = await ledger.heldBy(victim.workerId);
      expect(held.length).toBeGreaterThan(0);
      const times = await recoveryTimes(ledger, fleet, victim, held, killedAtMs);
      await load.end();
      await ledger.settled();
      expect(await fleet.stop()).toEqual([0, 0]);
      printTimes(`behind PgBouncer, ${name}: from the kill to the start elsewhere`, times);
      expect(await violations(ledger, fleet)).toEqual([]);
      expect(Math.max(...times)).toBeLessThanOrEqual(35_000);
      expect(fleet.entries().filter(({ event }) => event === 'listening')).toEqual([]);
    },
  );

  test.each(['node-postgres', 'postgres.js'] as const)(
    'an app does all that it does elsewhere, on %s',
    { timeout: 240_000 },
    async (driver) => {
      const db = openDb(driver);
      const kept = await db.transaction((tx) => queue.enqueue(tx, work, 'kept'));
      const rolledBack = db.transaction(async (tx) => {
        await queue.enqueue(tx, work, 'rolled back');
        throw new Error('on purpose');
      });
      await expect(rolledBack).rejects.toThrow('on purpose');
      const entries = ['a', 'b', 'a'].map((key) => ({ payload: key, uniqueKey: key }));
      const many = await queue.enqueueMany(db, work, entries);
      expect(many.map(({ duplicate }) => duplicate)).toEqual([false, false, true]);
      expect(await queue.enqueue(db, work, 'b', { uniqueKey: 'b' })).toEqual({
        id: many[1]?.id,
        duplicate: true,
        outcome: 'duplicate',
      });
      expect(await queue.find(db, work, kept.id)).toMatchObject({ state: 'due', payload: 'kept' });
      const { jobs } = await queue.list(db, { job: work, state: 'due' });
      expect(jobs.map(({ payload }) => payload).sort()).toEqual(['a', 'b', 'kept']);
      expect(await queue.cancel(db, kept.id)).toEqual({ cancelled: true });

      // Paused, a queue is left alone by a worker that does other work.
      expect(await queue.pause(db, 'default')).toBe(true);
      expect(await queue.paused(db)).toMatchObject([{ queue: 'default' }]);
      const running = defineJob('running', { queue: 'other' });
      const worker = createWorker(db, {
        queue,
        listen: false,
        handlers: [
          handle(work, () => {}),
          handle(running, async ({ job, signal }) => {
            job.progress({ page: 3 });
            await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
          }),
        ],
      });
      const errors: unknown[] = [];
      worker.on('error', ({ error }) => errors.push(error));
      onTestFinished(() => worker.stop());
      await worker.start();
      const { id } = await queue.enqueue(db, running);
      const find = () => queue.find(db, id);
      await until(async () => JSON.stringify(await find()).includes('"progress":{"page":3}'));
      expect(await queue.cancel(db, id, 'no longer needed')).toEqual({
        cancelled: 'requested',
      });
      await until(async () => (await find())?.state === 'cancelled');
      expect((await queue.list(db, { job: work, state: 'due' })).jobs).toHaveLength(2);
      expect(await queue.resume(db, 'default')).toBe(true);
      await until(async () => (await queue.list(db, { job: work, state: 'completed' })).jobs.length === 2);
      expect(await queue.paused(db)).toEqual([]);
      expect(errors).toEqual([]);
    },
  );

  /** A pool of an app, with more connections than PgBouncer has to the server. */
  function openDb(driver: 'node-postgres' | 'postgres.js'): ReturnType<typeof drizzleNodePostgres> {
    const url = pgBouncer.url(stage.url);
    if (driver === 'node-postgres') {
      const pool = new pg.Pool({ connectionString: url, max: 8 });
      onTestFinished(() => pool.end());
      return drizzleNodePostgres({ client: pool });
    }
    const client = postgres(url, { max: 8, prepare: false, onnotice: () => {} });
    onTestFinished(() => client.end({ timeout: 1 }));
    // What is used of them here is the same.
    return drizzlePostgresJs({ client }) as unknown as ReturnType<typeof drizzleNodePostgres>;
  }
});

describe.skipIf(!installed)('behind PgBouncer that discards all that a session has', () => {
  const stage = useStage();

  test('in session mode, after each client: a worker holds its session, and the jobs of a dead one begin elsewhere within 5 s', {
    timeout: 120_000,
  }, async () => {
    const { ledger, fleet } = stage;
    // Each client has a connection of its own for as long as it stays.
    const pgBouncer = await startPgBouncer(stage.url, 80, { mode: 'session' });
    onTestFinished(pgBouncer.stop);
    const workers = await fleet.startMany(3, { url: pgBouncer.url(stage.url) });
    await startRespiteIsOver(ledger);
    const load = new Load(ledger);
    await resumeTimes(fleet, workers, 0);
    const [victim] = workers;
    if (victim === undefined) throw new Error('no worker');
    await until(async () => (await ledger.heldBy(victim.workerId)).length > 0);
    const killedAtMs = await victim.kill();
    const held = await ledger.heldBy(victim.workerId);
    const times = await recoveryTimes(ledger, fleet, victim, held, killedAtMs);
    const isGone = 'select not exists (select from queue_workers where id = $1)';
    await until(async () => await ledger.value(isGone, [victim.workerId]));
    const goneAfterMs = monotonicMs() - killedAtMs;
    await load.end();
    await ledger.settled();
    expect(await fleet.stop()).toEqual([0, 0]);
    printTimes('behind PgBouncer in session mode, from the kill to the start elsewhere', [
      ...times,
      goneAfterMs,
    ]);
    expect(await violations(ledger, fleet)).toEqual([]);
    expect(Math.max(...times, goneAfterMs)).toBeLessThanOrEqual(5_000);
    expect(workers.every((worker) => worker.entries().some(({ event }) => event === 'listening'))).toBe(true);
  });

  test('in transaction mode, after each transaction: workers work by polling, and lose nothing', {
    timeout: 120_000,
  }, async () => {
    const { ledger, fleet } = stage;
    const pgBouncer = await startPgBouncer(stage.url, 4, { resetAlways: true });
    onTestFinished(pgBouncer.stop);
    const url = pgBouncer.url(stage.url);
    const workers = await Promise.all([
      fleet.start({ url }),
      fleet.start({ url, worker: { listen: false } }),
    ]);
    const load = new Load(ledger);
    await resumeTimes(fleet, workers, 0);
    await until(() => ledger.acknowledged.size >= 100);
    await load.end();
    await ledger.settled();
    expect(await fleet.stop()).toEqual([0, 0]);
    expect(await violations(ledger, fleet)).toEqual([]);
    expect(declaredGone(fleet)).toEqual([]);
    expect(fleet.entries().filter(({ event }) => event === 'listening')).toEqual([]);
  });
});
