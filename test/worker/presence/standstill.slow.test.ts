import { drizzle } from 'drizzle-orm/node-postgres';
import { createQueue, createWorker, type Database, defineJob, handle, LeaseLostError } from 'drizzle-queue';
import pg from 'pg';
import { beforeEach, expect, onTestFinished, test } from 'vitest';
import { TcpProxy } from '../../faults/tcp-proxy.ts';
import { clearTables } from '../../queries/support/jobs.ts';
import { useTestDatabase } from '../../support/test-database.ts';
import { until } from '../../support/until.ts';
import { nextEvent } from '../next-event.ts';

const database = useTestDatabase();
const queue = createQueue();
const long = defineJob('long');
/** The shortest that there is: a worker without a session may go unseen for so long. */
const SILENT_MS = 15_000;

beforeEach(() => clearTables(database.client));

/** A database behind a network that can fall silent for it, and for nobody else. */
async function behindProxy() {
  const proxy = await TcpProxy.start(Number(new URL(database.url).port));
  const pool = new pg.Pool({ connectionString: proxy.url(database.url), max: 5 });
  pool.on('error', () => {});
  pool.on('connect', (client) => client.on('error', () => {}));
  onTestFinished(async () => {
    await proxy.close();
    await pool.end();
  });
  const db = drizzle({ client: pool }) as unknown as Database;
  const fallSilent = () => {
    proxy.forget('both ways', 'all');
    proxy.weather = 'silent';
  };
  return { proxy, db, fallSilent };
}

test('a worker that nothing answers ends its attempts when peers may take them, begins nothing, and comes back', {
  timeout: 120_000,
}, async () => {
  const { proxy, db, fallSilent } = await behindProxy();
  let begun = 0;
  let reason: unknown;
  const parted = createWorker(db, {
    queue,
    silentMs: SILENT_MS,
    listen: false,
    log: false,
    concurrency: 2,
    handlers: [
      handle(long, async ({ signal }) => {
        begun++;
        await new Promise((resolve) => signal.addEventListener('abort', resolve));
        reason = signal.reason;
        throw signal.reason;
      }),
    ],
  });
  const errors: unknown[] = [];
  parted.on('error', ({ error }) => errors.push(error));
  onTestFinished(() => parted.stop());
  await parted.start();
  const { id } = await queue.enqueue(database.db, long);
  await until(() => begun === 1);
  fallSilent();
  const silentMs = performance.now();
  // The claims and the heartbeat wait longer than readiness allows, long before peers may take over.
  await until(() => !parted.health().ready);
  expect(parted.health()).toMatchObject({ live: true, ready: false });

  const ran: number[] = [];
  const peer = createWorker(database.db, {
    queue,
    silentMs: SILENT_MS,
    log: false,
    handlers: [handle(long, ({ job }) => void ran.push(job.id))],
  });
  onTestFinished(() => peer.stop());
  await peer.start();
  await until(() => reason !== undefined);
  expect(reason).toBeInstanceOf(LeaseLostError);
  expect(performance.now() - silentMs).toBeGreaterThan(SILENT_MS - 6_000);
  expect(parted.health().reasons).toContainEqual(expect.stringMatching(/is suspended/));
  await until(() => ran.length === 1);
  expect(ran).toEqual([id]);

  const lost = nextEvent(parted, 'lost');
  proxy.weather = 'fine';
  expect((await lost)[0].job.id).toBe(id);
  await until(() => parted.health().ready);
  expect(parted.health().reasons).toEqual([]);
  expect([begun, ran.length]).toEqual([1, 1]);
  expect(await database.client`select state from queue_results`).toEqual([{ state: 'completed' }]);
  // It is a worker as before.
  await peer.stop();
  await queue.enqueue(database.db, long);
  await until(() => begun === 2);
});

test('a worker with a session stands still within seconds, and goes on with what it has if nobody has taken it', {
  timeout: 120_000,
}, async () => {
  const { proxy, db, fallSilent } = await behindProxy();
  let begun = 0;
  let end: () => void = () => undefined;
  const isOver = new Promise<void>((resolve) => {
    end = resolve;
  });
  let aborted = false;
  const worker = createWorker(db, {
    queue,
    log: false,
    concurrency: 1,
    handlers: [
      handle(long, async ({ signal }) => {
        begun++;
        signal.addEventListener('abort', () => {
          aborted = true;
        });
        await isOver;
      }),
    ],
  });
  worker.on('error', () => {});
  onTestFinished(() => worker.stop());
  await worker.start();
  await queue.enqueue(database.db, long);
  await until(() => begun === 1);
  fallSilent();
  await until(() => worker.health().reasons.some((reason) => reason.includes('is suspended')));
  expect(worker.health().ready).toBe(false);
  proxy.weather = 'fine';
  await until(() => worker.health().ready);
  expect([begun, aborted]).toEqual([1, false]);
  const completed = nextEvent(worker, 'completed');
  end();
  await completed;
});
