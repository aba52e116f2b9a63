import { connect } from 'node:net';
import { describe, expect, test } from 'vitest';
import { useTestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';
import { finishedJobs } from './support/finished-jobs.ts';
import { useGuideApp } from './support/guide-app.ts';

const SERVER = 'node --import tsx --env-file=.env src/server.ts';
const WORKER = 'node --import tsx --env-file=.env src/worker.ts';
const ORDER =
  'curl -sf -X POST localhost:3000/orders -H \'content-type: application/json\' -d \'{"email":"eve@example.com"}\'';

describe.each([
  ['hono', '/health/ready'],
  ['express', '/health'],
])('%s', (name, health) => {
  const database = useTestDatabase({ template: false });
  const app = useGuideApp({
    from: ['servers', name],
    guide: name,
    env: () => ({ DATABASE_URL: database.url }),
  });

  test('its first job is done by the commands of its guide', async () => {
    await app().follow('The first job');
    expect(await finishedJobs(database, 1)).toEqual([{ kind: 'send-receipt', state: 'completed' }]);
    app().report('the first job was done');
    await until(() => app().running(WORKER).output().includes('A receipt for ada@example.com'));
    await app().shell('npx tsc');
    await app().stopAll();
  });

  test('a worker inside the server works and stops with it', async () => {
    await app().follow('A worker inside the server');
    await app().shell('npx tsc');
    const server = await app().launch(SERVER);
    expect((await app().request(health)).status).toBe(200);
    await app().shell(ORDER);
    await finishedJobs(database, 2);

    // A request that waits for the database when the signal comes.
    let release = () => {};
    const released = new Promise<void>((resolve) => {
      release = resolve;
    });
    let locking: Promise<unknown> = released;
    await new Promise<void>((resolve) => {
      locking = database.client.begin(async (sql) => {
        await sql`lock table orders`;
        resolve();
        await released;
      });
    });
    const late = app().request('/orders', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ email: 'late@example.com' }),
    });
    await until(async () => {
      const waiting = await database.client`
        select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`;
      return waiting.length > 0;
    });
    server.signal('SIGTERM');
    await until(() => isRefused(app().port));
    release();
    await locking;
    expect((await late).status).toBe(201);
    expect(await server.ended, server.output()).toBe(0);
    expect(server.output()).toContain('A receipt for eve@example.com');
    expect(await database.client`select from queue_workers`).toHaveLength(0);
  });
});

describe('bun', () => {
  const database = useTestDatabase({ template: false });
  const app = useGuideApp({
    from: ['bun'],
    guide: 'bun',
    env: () => ({ DATABASE_URL: database.url }),
    install: 'bun install --frozen-lockfile',
  });

  test('its first job is done by the commands of its guide', async () => {
    await app().follow('The first job');
    expect(await finishedJobs(database, 1)).toEqual([{ kind: 'send-receipt', state: 'completed' }]);
    app().report('the first job was done');
    const worker = app().running('bun src/worker.ts');
    await until(() => worker.output().includes('A receipt for ada@example.com'));
    await app().shell('bunx tsc');
    worker.signal('SIGTERM');
    expect(await worker.ended, worker.output()).toBe(0);
    expect(await database.client`select from queue_workers`).toHaveLength(0);
  });
});

/** Whether nobody takes connections any more; those that are open may still be served. */
async function isRefused(port: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.1');
  try {
    return await new Promise((resolve) => {
      socket.once('connect', () => resolve(false));
      socket.once('error', () => resolve(true));
    });
  } finally {
    socket.destroy();
  }
}
