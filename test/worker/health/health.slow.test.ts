import { drizzle } from 'drizzle-orm/postgres-js';
import {
  createQueue,
  createWorker,
  defineJob,
  handle,
  handleBatch,
  healthHandler,
  type Worker,
} from 'drizzle-queue';
import postgres from 'postgres';
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { Background } from '../../../src/core/worker/base/background.ts';
import { WorkerEmitter } from '../../../src/core/worker/base/events.ts';
import { healthOf } from '../../../src/core/worker/health.ts';
import { TcpProxy } from '../../faults/tcp-proxy.ts';
import { clearTables } from '../../queries/support/jobs.ts';
import { migrateDatabase } from '../../support/databases.ts';
import { startPostgres } from '../../support/embedded-postgres.ts';
import { gate } from '../../support/gate.ts';
import { useTestDatabase } from '../../support/test-database.ts';
import { until } from '../../support/until.ts';
import { nextEvent } from '../next-event.ts';

const database = useTestDatabase();
const queue = createQueue();
const work = defineJob('work');

beforeEach(() => clearTables(database.client));

/** What a probe gets. */
async function probe(worker: Pick<Worker, 'health'>, path: string, method = 'GET') {
  const answer = await healthHandler(worker)(new Request(`http://worker.internal${path}`, { method }));
  return { status: answer.status, text: await answer.text(), headers: answer.headers };
}

describe('health', () => {
  test('follows a worker from before its start until after its stop', async () => {
    const { open, opened } = gate();
    const worker = createWorker(database.db, {
      queue,
      queues: { default: { concurrency: 3 }, other: { concurrency: 4 } },
      handlers: [handle(work, () => opened)],
      log: false,
    });
    expect(worker.health()).toEqual({
      live: true,
      ready: false,
      lastBeatMs: undefined,
      unansweredMs: {},
      listening: false,
      busy: 0,
      slots: 7,
      reasons: ['The worker has not started yet'],
    });
    const listening = nextEvent(worker, 'listening');
    await queue.enqueueMany(database.db, work, [{}, {}]);
    await worker.start();
    await listening;
    await until(() => worker.health().busy === 2);
    expect(worker.health()).toEqual({
      live: true,
      ready: true,
      lastBeatMs: expect.any(Number),
      unansweredMs: expect.any(Object),
      listening: true,
      busy: 2,
      slots: 7,
      reasons: [],
    });
    const stopping = worker.stop();
    expect(worker.health()).toMatchObject({ live: true, ready: false, reasons: ['The worker is stopping'] });
    open();
    await stopping;
    expect(worker.health()).toMatchObject({
      live: true,
      ready: false,
      listening: false,
      busy: 0,
      reasons: ['The worker has stopped'],
    });
  });

  test('counts the jobs of a batch as one handler', async () => {
    const { open, opened } = gate();
    const worker = createWorker(database.db, {
      queue,
      handlers: [handleBatch(work, { maxSize: 5, maxWaitMs: 5_000 }, () => opened)],
      log: false,
    });
    await queue.enqueueMany(database.db, work, [{}, {}, {}, {}, {}]);
    await worker.start();
    await until(() => worker.health().busy > 0);
    expect(worker.health().busy).toBe(1);
    open();
    await worker.stop();
  });

  test('is not live when a background part has ended before its time', async () => {
    const events = new WorkerEmitter();
    const heard: string[] = [];
    events.on('error', ({ during }) => heard.push(during));
    const background = new Background(events);
    background.start([
      { run: (signal) => new Promise((resolve) => signal.addEventListener('abort', () => resolve())) },
      { run: () => Promise.reject(new Error('a bug')) },
    ]);
    const health = () =>
      healthOf({
        parts: undefined,
        unansweredMs: {},
        state: 'started',
        hasFailed: background.hasFailed,
        slots: 1,
      });
    expect(health()).toMatchObject({ live: true, ready: true });
    await until(() => heard.length > 0);
    expect(health()).toMatchObject({
      live: false,
      ready: false,
      reasons: [expect.stringMatching(/^A background part of the worker failed/)],
    });
    await background.end(1_000);
    expect(heard).toEqual(['running in the background']);
  });
});

describe('while the database', () => {
  test('is silent, the worker is live, and not ready as soon as peers may declare it gone', {
    timeout: 180_000,
  }, async () => {
    const proxy = await TcpProxy.start(Number(new URL(database.url).port));
    const client = postgres(proxy.url(database.url), { max: 4, onnotice: () => {}, fetch_types: false });
    onTestFinished(async () => {
      proxy.weather = 'fine';
      await client.end({ timeout: 0 });
      await proxy.close();
    });
    const worker = createWorker(drizzle({ client }), {
      queue,
      handlers: [handle(work, () => {})],
      shutdownTimeoutMs: 0,
      log: false,
    });
    worker.on('error', () => {});
    await worker.start();
    expect(await probe(worker, '/ready')).toMatchObject({ status: 200 });
    proxy.weather = 'silent';
    await until(() => !worker.health().ready);
    // Its row shows a session, so peers may soon declare it gone.
    expect(worker.health().reasons).toEqual([expect.stringMatching(/^The worker is suspended/)]);
    const said = (what: RegExp) => worker.health().reasons.some((reason) => what.test(reason));
    await until(() => said(/^The database has not answered a heartbeat for 1\d s$/));
    const { live, lastBeatMs, unansweredMs } = worker.health();
    expect(live).toBe(true);
    expect(lastBeatMs).toBeGreaterThanOrEqual(10_000);
    expect(unansweredMs.heartbeat).toBeGreaterThan(5_000);
    expect(await probe(worker, '/live')).toMatchObject({ status: 200 });
    expect(await probe(worker, '/ready')).toMatchObject({ status: 503 });
    proxy.weather = 'fine';
    await until(() => worker.health().ready);
    await worker.stop();
  });

  test('is shut down, the worker is live, and not ready', { timeout: 180_000 }, async () => {
    const server = await startPostgres();
    const url = server.url;
    await migrateDatabase(url);
    const client = postgres(url, { max: 4, onnotice: () => {}, fetch_types: false });
    onTestFinished(() => client.end({ timeout: 0 }));
    const worker = createWorker(drizzle({ client }), {
      queue,
      handlers: [handle(work, () => {})],
      shutdownTimeoutMs: 0,
      log: false,
    });
    worker.on('error', () => {});
    await worker.start();
    expect(worker.health().ready).toBe(true);
    await server.stop();
    await until(() => !worker.health().ready);
    expect(await probe(worker, '/live')).toMatchObject({ status: 200 });
    expect(await probe(worker, '/ready')).toMatchObject({ status: 503 });
    await worker.stop();
  });
});

describe('healthHandler', () => {
  const health = (live: boolean, ready: boolean) => ({
    health: () => ({
      live,
      ready,
      lastBeatMs: 1,
      unansweredMs: {},
      listening: true,
      busy: 0,
      slots: 1,
      reasons: ['x'],
    }),
  });

  test.each([
    [true, true, 200, 200],
    [true, false, 200, 503],
    [false, false, 503, 503],
  ])('live %s, ready %s: %i and %i', async (live, ready, atLive, atReady) => {
    const worker = health(live, ready);
    for (const prefix of ['', '/probes/worker']) {
      expect((await probe(worker, `${prefix}/live`)).status).toBe(atLive);
      expect((await probe(worker, `${prefix}/ready?x=1`)).status).toBe(atReady);
    }
  });

  test('shows the health as JSON, which nobody caches, and a HEAD without it', async () => {
    const { text, headers } = await probe(health(true, true), '/ready');
    expect(JSON.parse(text)).toEqual(health(true, true).health());
    expect(headers.get('content-type')).toBe('application/json');
    expect(headers.get('cache-control')).toBe('no-store');
    expect(await probe(health(true, false), '/ready', 'HEAD')).toMatchObject({ status: 503, text: '' });
  });

  test('knows no other path and no other method', async () => {
    for (const path of ['/', '/alive', '/live/x', '/readyz', '/LIVE']) {
      expect((await probe(health(true, true), path)).status).toBe(404);
    }
    const posted = await probe(health(true, true), '/live', 'POST');
    expect(posted.status).toBe(405);
    expect(posted.headers.get('allow')).toBe('GET, HEAD');
  });

  test('takes nothing but a worker', () => {
    expect(() => healthHandler({} as Worker)).toThrow(/healthHandler takes what createWorker\(\) returns/);
  });
});
