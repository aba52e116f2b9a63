import { drizzle } from 'drizzle-orm/node-postgres';
import { createQueue, createWorker, defineJob, handle } from 'drizzle-queue';
import pg from 'pg';
import { onTestFinished, test, vi } from 'vitest';
import { Watch } from '../../../src/core/worker/claim/watch.ts';
import { TcpProxy } from '../../faults/tcp-proxy.ts';
import { useTestDatabase } from '../../support/test-database.ts';
import { until } from '../../support/until.ts';

const database = useTestDatabase();
const queue = createQueue();
const job = defineJob('job');

test('a worker without notifications looks for jobs at once when the database answers again', async () => {
  const proxy = await TcpProxy.start(Number(new URL(database.url).port));
  const pool = new pg.Pool({ connectionString: proxy.url(database.url), max: 4 });
  pool.on('error', () => undefined);
  let ran = 0;
  const worker = createWorker(drizzle({ client: pool }), {
    queue,
    listen: false,
    handlers: [handle(job, () => void ran++)],
  });
  const errors = new Set<string>();
  worker.on('error', ({ during }) => errors.add(during));
  onTestFinished(async () => {
    await worker.stop();
    await pool.end();
    await proxy.close();
  });
  // Only an idle queue is looked at, and one that has had no job is idle from the start.
  const idle = new Promise<void>((resolve) => worker.on('idle', () => resolve()));
  await worker.start();
  await idle;
  proxy.weather = 'refusing';
  proxy.cut();
  await until(() => errors.has('the heartbeat') && errors.has('looking for due jobs'));
  // Its own next try may be five seconds away.
  const look = vi.spyOn(Watch.prototype, 'look');
  onTestFinished(() => look.mockRestore());
  await queue.enqueue(database.db, job);
  proxy.weather = 'fine';
  await until(() => ran === 1);
  await until(() => look.mock.calls.length > 0);
});
