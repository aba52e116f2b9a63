import { setImmediate as nextTurn } from 'node:timers/promises';
import { createQueue, createWorker, defineJob, handle } from 'drizzle-queue';
import { beforeEach, expect, onTestFinished, test, vi } from 'vitest';
import { aborted } from '../../../src/core/drivers/listen.ts';
import type { Runner } from '../../../src/core/sql/executor.ts';
import { ClaimTries } from '../../../src/core/worker/claim/claim-tries.ts';
import { ClaimTurn } from '../../../src/core/worker/claim/claim-turn.ts';
import { type ClaimAnswer, Claims } from '../../../src/core/worker/claim/claims.ts';
import { Lane } from '../../../src/core/worker/claim/lane.ts';
import { clearTables, fillJobs, tables } from '../../queries/support/jobs.ts';
import { useTestDatabase } from '../../support/test-database.ts';
import { until } from '../../support/until.ts';
import { demandFor, nextClaim, type TestDemand } from '../support/next-claim.ts';

const database = useTestDatabase();
beforeEach(() => clearTables(database.client));

/** Claims of workers of one process: they share a pool of several connections. */
function claimsOf(workerId: number, demand: TestDemand, runner: Runner = database.db): Claims {
  const options = {
    queue: 'q',
    quietMs: () => 0,
    agingMs: undefined,
    attempts: { paused: false },
    wake: () => undefined,
  };
  const lanes = [new Lane(options, ['k'])];
  const holder = { db: database.db, tables, queue: 'q', workerId };
  return new Claims({
    ...holder,
    demand,
    runner,
    lanes,
    tries: new ClaimTries({ ...holder, mayPark: true }),
  });
}

/** The first claim of a worker that has use for so many jobs. */
function claim(workerId: number, most: number, runner?: Runner): Promise<ClaimAnswer> {
  return nextClaim(claimsOf(workerId, demandFor(most), runner));
}

/** Counts how many statements are under way. */
function counting(): { readonly runner: Runner; readonly most: () => number } {
  let underWay = 0;
  let most = 0;
  const runner: Runner = {
    execute: async (query) => {
      most = Math.max(most, ++underWay);
      try {
        return await database.db.execute(query);
      } finally {
        underWay--;
      }
    },
  };
  return { runner, most: () => most };
}

/** Sends nothing before the test is over. */
function hanging(): Runner {
  const over = new Promise<void>((resolve) => onTestFinished(() => resolve()));
  return { execute: () => over.then(() => []) };
}

test('large claims of one queue by the workers of a process follow each other', async () => {
  await fillJobs(database.client, 3_000);
  const { runner, most } = counting();
  const answers = await Promise.all([1, 2, 3, 4].map((id) => claim(id, 1_000, runner)));
  expect(most()).toBe(1);
  expect(answers.map(({ jobs }) => jobs.length)).toEqual([1_000, 1_000, 1_000, 0]);
  expect(answers.map(({ sawEnd }) => sawEnd)).toEqual([false, false, false, true]);
  expect(new Set(answers.flatMap(({ jobs }) => jobs.map(({ id }) => id))).size).toBe(3_000);
});

test('one that fails lets the next go on', async () => {
  await fillJobs(database.client, 1_000);
  const failing: Runner = { execute: () => Promise.reject(new Error('lost')) };
  const first = claim(1, 1_000, failing);
  const second = claim(2, 1_000);
  await expect(first).rejects.toThrow('lost');
  expect((await second).jobs).toHaveLength(1_000);
});

test('small claims go out at once, together, but for a large one under way', async () => {
  await fillJobs(database.client, 1_000);
  const { runner, most } = counting();
  const small = await Promise.all([1, 2, 3].map((id) => claim(id, 10, runner)));
  expect(most()).toBe(3);
  const [large, after] = await Promise.all([claim(1, 500), claim(2, 10)]);
  const [last = 0] = large.jobs.slice(-1).map(({ id }) => id);
  expect(after.jobs.every(({ id }) => id > last)).toBe(true);
  expect([...small, large, after].map(({ jobs }) => jobs.length)).toEqual([10, 10, 10, 500, 10]);
});

test('one without an answer does not hold up the others for ever, and is waited for once', async () => {
  await fillJobs(database.client, 4_000);
  void claim(1, 1_000, hanging());
  const others = await Promise.all([claim(2, 1_000), claim(3, 1_000)]);
  expect(others.map(({ jobs }) => jobs.length)).toEqual([1_000, 1_000]);
  const { runner, most } = counting();
  const peer = claim(4, 1_000, runner);
  expect(most()).toBe(1);
  expect((await peer).jobs).toHaveLength(1_000);
});

test('nor is each of the small ones after it held up anew', async () => {
  await fillJobs(database.client, 3);
  void claim(1, 1_000, hanging());
  expect((await claim(2, 1)).jobs).toHaveLength(1);
  const { runner, most } = counting();
  const next = claim(2, 1, runner);
  expect(most()).toBe(1);
  expect((await next).jobs).toHaveLength(1);
});

test('nothing is kept of a queue whose large claims are over', async () => {
  const turns = new Map();
  const queues = Array.from({ length: 1_000 }, (_, n) => `tenant-${n}`);
  const claims = queues.flatMap((queue) =>
    [1, 2].map(() => new ClaimTurn(queue, turns).take(1_000, async () => queue)),
  );
  expect(turns.size).toBe(1_000);
  await Promise.all(claims);
  expect(turns.size).toBe(0);
});

test('a large claim that meets no other sets no timer', async () => {
  const set = vi.spyOn(globalThis, 'setTimeout');
  onTestFinished(() => set.mockRestore());
  const ofTurns = () => set.mock.calls.filter(([, ms = 0]) => ms > 900 && ms <= 1_000);
  void claim(1, 1_000, hanging());
  await nextTurn();
  expect(ofTurns()).toHaveLength(0);
  void claim(2, 1_000, hanging());
  await nextTurn();
  expect(ofTurns()).toHaveLength(1);
});

test('one whose worker is stopped or paused while it waits for its turn is not sent', async () => {
  await fillJobs(database.client, 2_000);
  let answer: (rows: never[]) => void = () => undefined;
  const first = claim(1, 1_000, { execute: () => new Promise((resolve) => (answer = resolve)) });
  const sent = vi.fn(database.db.execute.bind(database.db));
  const stopped = demandFor(1_000);
  const second = nextClaim(claimsOf(2, stopped, { execute: sent }));
  stopped.size = 0;
  answer([]);
  await first;
  expect(await second).toMatchObject({ jobs: [], limit: 0, sawEnd: false, leftOut: true });
  expect(sent).not.toHaveBeenCalled();
});

test('a worker that is stopped while its claim waits for its turn holds nothing afterwards', async () => {
  const queue = createQueue();
  const work = defineJob('k', { queue: 'stopped' });
  await queue.enqueue(database.db, work);
  // As claims of other workers of the process, each of which is waited for for a second.
  const open = new AbortController();
  const turn = new ClaimTurn('stopped', new Map());
  vi.spyOn(ClaimTurn, 'of').mockReturnValue(turn);
  onTestFinished(() => void vi.restoreAllMocks());
  const others = Array.from({ length: 60 }, () => turn.take(1_000, () => aborted(open.signal)));
  const take = vi.spyOn(turn, 'take');
  onTestFinished(() => open.abort());
  const handler = vi.fn();
  const worker = createWorker(database.db, { queue, handlers: [handle(work, handler)] });
  onTestFinished(() => worker.stop());
  await worker.start();
  await until(() => take.mock.calls.length > 0);
  const stopping = worker.stop();
  open.abort();
  await Promise.all([stopping, ...others]);
  const [job] = await database.client`select attempt, worker_id from queue_jobs where queue = 'stopped'`;
  expect(job).toEqual({ attempt: 0, worker_id: null });
  expect(handler).not.toHaveBeenCalled();
});

test('one that has nothing to claim any more when its turn comes learns nothing of what is due', async () => {
  await fillJobs(database.client, 2_000);
  const demand = demandFor(10);
  await database.client`update queue_jobs set run_at = now() - interval '1 minute'`;
  const claims = claimsOf(2, demand);
  expect((await nextClaim(claims)).jobs).toHaveLength(10);
  const first = claim(1, 1_000);
  demand.size = 1_000;
  const second = nextClaim(claims);
  demand.size = 0;
  expect((await first).jobs).toHaveLength(1_000);
  expect(await second).toMatchObject({ jobs: [], sawEnd: false, leftOut: true });
  demand.size = 2_000;
  expect((await nextClaim(claims)).jobs).toHaveLength(990);
});
