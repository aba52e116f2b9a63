import { createQueue, createWorker, defineJob, drain, handle, unvalidated } from 'drizzle-queue';
import { afterEach, beforeEach, expect, onTestFinished, test } from 'vitest';
import { atFaultPoints } from '../../../src/core/sql/fault-point.ts';
import { clearTables } from '../../queries/support/jobs.ts';
import { runningMsUntil } from '../../support/running-time.ts';
import { useTestDatabase } from '../../support/test-database.ts';
import { until } from '../../support/until.ts';

const database = useTestDatabase();
const queue = createQueue();
const work = defineJob('work', { payload: unvalidated<{ waits: boolean }>() });
/** On a busy machine, too: each of the two is found again before it is lost. */
const patience = { timeoutMs: 40_000 };
beforeEach(() => clearTables(database.client));
afterEach(() => atFaultPoints());

test('jobs that could not be given back in an outage are given back at its end', async () => {
  const { client } = database;
  await client`
    create or replace function refuse() returns trigger language plpgsql as $$
    begin raise exception 'going down' using errcode = '57P01'; end $$`;
  onTestFinished(async () => void (await client`drop function if exists refuse cascade`));
  await queue.enqueue(database.db, work, { waits: false });
  let lost = false;
  atFaultPoints(async (at) => {
    if (at !== 'claim: answered' || lost) return;
    lost = true;
    await client`
      create trigger refuse before update on queue_jobs for each row
      when (old.worker_id is not null and new.worker_id is null) execute function refuse()`;
    throw new Error('the connection broke');
  });
  let ran = 0;
  const handlers = [handle(work, () => void ran++)];
  const worker = createWorker(database.db, { queue, log: false, handlers });
  onTestFinished(() => worker.stop());
  const failures = { giveBack: 0, heartbeat: 0 };
  worker.on('error', ({ during }) => {
    if (during === 'the heartbeat') failures.heartbeat++;
    if (during === `giving back jobs of '${work.queue}'`) failures.giveBack++;
  });
  await worker.start();
  await until(() => failures.giveBack === 6, patience);
  await client`create trigger refuse before update on queue_workers for each row execute function refuse()`;
  await until(() => failures.heartbeat > 0, patience);
  // From its next failure on it waits for 3.75 seconds at least.
  const failed = failures.giveBack;
  await until(() => failures.giveBack > failed, patience);
  await client`drop function refuse cascade`;
  const runningMs = await runningMsUntil(until(() => ran === 1, patience));
  expect(runningMs).toBeLessThan(3_000);
}, 180_000);

test('a drain runs the jobs that were not given back only since others were refused', async () => {
  const { client } = database;
  await client`
    create or replace function refuse() returns trigger language plpgsql as $$
    begin raise exception 'refused' using errcode = '23514'; end $$`;
  onTestFinished(async () => void (await client`drop function if exists refuse cascade`));
  await queue.enqueueMany(
    database.db,
    work,
    Array.from({ length: 200 }, () => ({ payload: { waits: false } })),
  );
  let lost = 0;
  atFaultPoints(async (at) => {
    if (at !== 'claim: answered' || lost > 0) return;
    const held = await client`select from queue_jobs where worker_id is not null`;
    if (held.length === 0) return;
    lost = held.length;
    await client`
      create trigger refuse before update on queue_jobs for each row
      when (old.worker_id is not null and new.worker_id is null and old.id % 10 = 0) execute function refuse()`;
    throw new Error('the connection broke');
  });
  const handlers = [handle(work, () => undefined)];
  const drained = await drain(database.db, {
    queue,
    log: false,
    handlers,
    concurrency: 200,
    deadlineMs: 60_000,
  });
  expect(lost).toBe(200);
  expect(drained).toMatchObject({ completed: 180 });
}, 80_000);

/** Two claims in a row that take effect, and of which the worker hears nothing; answers how many were. */
function losingTwo(): { readonly lost: number } {
  const seen = { lost: 0 };
  atFaultPoints(async (at) => {
    if (at !== 'claim: answered' || seen.lost === 2) return;
    const held = await database.client`select from queue_jobs where worker_id is not null`;
    if (held.length === 0) return;
    seen.lost++;
    throw new Error('the connection broke');
  });
  return seen;
}

test('an idle worker runs what two lost answers have brought within seconds of each other', async () => {
  await queue.enqueue(database.db, work, { waits: false });
  const seen = losingTwo();
  let ran = 0;
  const handlers = [handle(work, () => void ran++)];
  const worker = createWorker(database.db, { queue, log: false, handlers });
  onTestFinished(() => worker.stop());
  await worker.start();
  const results = async () => await database.client`select attempt from queue_results`;
  await until(async () => (await results()).length > 0, patience);
  expect([seen.lost, ran]).toEqual([2, 1]);
  expect(await results()).toMatchObject([{ attempt: 1 }]);
}, 240_000);

test('a worker with no free slot gives them back, for others to run', async () => {
  await queue.enqueue(database.db, work, { waits: false });
  const seen = losingTwo();
  const long = new AbortController();
  const ran: string[] = [];
  const of = (name: string) =>
    createWorker(database.db, {
      queue,
      log: false,
      concurrency: 1,
      handlers: [
        handle(work, async ({ payload }) => {
          ran.push(name);
          if (payload.waits) await new Promise((resolve) => long.signal.addEventListener('abort', resolve));
        }),
      ],
    });
  const [busy, other] = [of('busy'), of('other')];
  onTestFinished(async () => {
    long.abort();
    await Promise.all([busy.stop(), other.stop()]);
  });
  await busy.start();
  await until(() => seen.lost === 2, patience);
  await queue.enqueue(database.db, work, { waits: true }, { priority: 0 });
  await until(() => ran.length === 1, patience);
  await other.start();
  await until(() => ran.length === 2, patience);
  expect(ran).toEqual(['busy', 'other']);
}, 240_000);

test('a drain is not over before it has run them', async () => {
  await queue.enqueue(database.db, work, { waits: false });
  const seen = losingTwo();
  const result = await drain(database.db, {
    queue,
    log: false,
    handlers: [handle(work, () => {})],
    deadlineMs: 20_000,
  });
  expect([seen.lost, result.completed, result.empty]).toEqual([2, 1, true]);
});
