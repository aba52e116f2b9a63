import { setTimeout as delay } from 'node:timers/promises';
import type { SQL } from 'drizzle-orm';
import { PgDialect } from 'drizzle-orm/pg-core';
import { createQueue, createWorker, type Database, defineJob, handle, unvalidated } from 'drizzle-queue';
import { afterEach, beforeEach, expect, onTestFinished, test } from 'vitest';
import { claimJobs } from '../../../src/core/queries/claim/claim-jobs.ts';
import { registerWorker } from '../../../src/core/queries/presence/register-worker.ts';
import { atFaultPoints } from '../../../src/core/sql/fault-point.ts';
import { claimOf, clearTables, tables } from '../../queries/support/jobs.ts';
import { runningMsUntil } from '../../support/running-time.ts';
import { useTestDatabase } from '../../support/test-database.ts';
import { until } from '../../support/until.ts';
import { nextEvent } from '../next-event.ts';

const database = useTestDatabase({ max: 10 });
const queue = createQueue();
const work = defineJob('work', { queue: 'q', payload: unvalidated<number>() });

beforeEach(() => clearTables(database.client));
afterEach(() => atFaultPoints());

const RETURNS = 8;
const LASTING = -1;
const dialect = new PgDialect();

test(`a worker that was declared gone ${RETURNS} times under load knows of all that it holds, and has lost nothing`, {
  timeout: 120_000,
}, async () => {
  const [peer = database] = await database.connect();
  const problems: unknown[] = [];
  let ran = 0;
  let returns = 0;
  let asking = false;
  let askedMs = 0;
  let askedAgain = () => {};
  // One job runs all the time: a worker that holds nothing when it comes back has nothing to ask.
  let lastingBegan = () => {};
  const isHeld = new Promise<void>((resolve) => {
    lastingBegan = resolve;
  });
  let endLasting = () => {};
  const isOver = new Promise<void>((resolve) => {
    endLasting = resolve;
  });
  // What a worker asks when it has come back. Its answer comes after that of a claim that was under way, of which it says nothing,
  // if there was one: under load that happens by itself. Such a claim asks, too. No other is sent until the answer is there.
  const [{ db } = database] = await database.connect();
  // One of its overloads, which the majors declare differently.
  const execute = db.execute.bind(db) as unknown as (query: SQL) => PromiseLike<unknown>;
  const slow = Object.assign(db, {
    execute: async (query: SQL) => {
      const answer = await execute(query);
      if (!dialect.sqlToQuery(query).sql.includes('select j.id, j.fence from')) return answer;
      if (asking) askedAgain();
      else {
        asking = true;
        askedMs = performance.now();
        const again = new Promise<void>((resolve) => {
          askedAgain = resolve;
        });
        await Promise.race([nextEvent(worker, 'claimed'), again, delay(100)]);
        asking = false;
        returns++;
      }
      return answer;
    },
  });
  const worker = createWorker(slow as unknown as Database, {
    queue,
    queues: { q: { concurrency: 20 } },
    handlers: [
      handle(work, async ({ payload }) => {
        ran++;
        if (payload === LASTING) {
          lastingBegan();
          await isOver;
        } else await new Promise((resolve) => setTimeout(resolve, 5));
      }),
    ],
  });
  worker.on('claimed', ({ durationMs }) => {
    if (asking && performance.now() - durationMs > askedMs)
      problems.push('claimed before it knew what it has lost');
  });
  worker.on('lost', ({ job }) => problems.push(`lost ${job.id}`));
  // On a busy machine one may wait so long for a slot that it is given back.
  const givenBack = new Map<number, number>();
  worker.on('interrupted', ({ job }) => givenBack.set(job.id, (givenBack.get(job.id) ?? 0) + 1));
  worker.on('failed', ({ error }) => problems.push(error));
  worker.on('error', ({ error }) => problems.push(error));
  onTestFinished(() => worker.stop());
  await queue.enqueue(database.db, work, LASTING);
  let enqueued = 1;
  const enqueueMore = async () => {
    await queue.enqueueMany(
      database.db,
      work,
      Array.from({ length: 2_000 }, (_, n) => ({ payload: n })),
    );
    enqueued += 2_000;
  };
  await enqueueMore();
  await worker.start();
  await isHeld;
  while (returns < RETURNS) {
    const before = returns;
    await peer.client`delete from queue_workers`;
    while (returns === before) {
      if (enqueued - ran < 2_000) await enqueueMore();
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }
  endLasting();
  // Whatever it held without knowing would stay where it is for as long as it lives.
  await until(async () => (await peer.client`select from queue_jobs`).length === 0, { timeoutMs: 60_000 });
  expect(problems).toEqual([]);
  expect(ran).toBe(enqueued);
  const ended = await peer.client<{ id: string; attempt: number; claims: number; state: string }[]>`
    select job_id as id, attempt, (fence - floor(extract(epoch from created_at) * 1000))::int as claims, state from queue_results`;
  expect(
    ended.filter(
      ({ id, attempt, claims, state }) =>
        state !== 'completed' || attempt !== 1 || claims !== 1 + (givenBack.get(Number(id)) ?? 0),
    ),
  ).toEqual([]);
});

test('what it has claimed while it was gone, and a peer has taken over before the answer came, never begins', {
  timeout: 240_000,
}, async () => {
  const [peer = database] = await database.connect();
  let ran = 0;
  const worker = createWorker(database.db, { queue, handlers: [handle(work, () => void ran++)] });
  let began = 0;
  worker.on('began', () => began++);
  onTestFinished(() => worker.stop());
  await worker.start();
  let isBack = false;
  let claims = 0;
  let peerId = 0;
  atFaultPoints(async (point) => {
    if (point === 'liveness: returned') isBack = true;
    if (point !== 'claim: answered' || isBack || (await heldJobs()) === 0 || claims++ > 0) return;
    await peer.client`delete from queue_workers`;
    peerId = await registerWorker(peer.db, tables, { name: 'a peer', queues: ['q'] });
    const claim = claimOf({ kinds: ['work'], workerId: peerId, fromGoneWorkers: true });
    expect(await claimJobs(peer.db, tables, claim)).toHaveLength(1);
    await until(() => isBack);
  });
  const lost = nextEvent(worker, 'lost');
  const { id } = await queue.enqueue(peer.db, work, 1);
  await until(() => isBack);
  // By and by every attempt is looked after; this is at once.
  expect(await runningMsUntil(lost)).toBeLessThan(1_000);
  expect([began, ran]).toEqual([0, 0]);
  const [row] =
    await peer.client`select worker_id::int, (fence - floor(extract(epoch from created_at) * 1000))::int as claims, attempt from queue_jobs where id = ${id}`;
  expect(row).toEqual({ worker_id: peerId, claims: 2, attempt: 2 });

  async function heldJobs(): Promise<number> {
    return (await peer.client`select from queue_jobs where worker_id is not null`).length;
  }
});
