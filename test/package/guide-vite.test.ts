import { describe, expect, test } from 'vitest';
import { useTestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';
import { finishedJobs } from './support/finished-jobs.ts';
import { useGuideApp } from './support/guide-app.ts';

describe.each([
  {
    name: 'sveltekit',
    worker: 'node --import tsx --env-file=.env src/lib/server/worker.ts',
    inside: 'QUEUE_WORKER=1 node --env-file=.env build',
    orders: '/orders',
  },
  {
    name: 'nuxt',
    worker: 'node --import tsx --env-file=.env server/worker.ts',
    inside: 'QUEUE_WORKER=1 node --env-file=.env .output/server/index.mjs',
    orders: '/api/orders',
  },
])('$name', ({ name, worker, inside, orders }) => {
  const database = useTestDatabase({ template: false });
  const app = useGuideApp({
    from: [name],
    guide: name,
    env: () => ({ DATABASE_URL: database.url, CRON_SECRET: 'secret' }),
  });

  test('its first job is done by the commands of its guide', async () => {
    if (app().guide.has('The database')) await app().follow('The database');
    await app().follow('The first job');
    expect(await finishedJobs(database, 1)).toEqual([{ kind: 'send-receipt', state: 'completed' }]);
    app().report('the first job was done');
    await until(() => app().running(worker).output().includes('A receipt for ada@example.com'));
    await app().stopAll();
  });

  test('a cron drains, and a worker inside the server works and stops with it', async () => {
    // First the files of the cron, so that one build has all of them.
    await app().follow('On Vercel: a cron');
    await app().follow('A worker inside the server');
    const server = app().running(inside);
    const placed = await app().request(orders, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ email: 'eve@example.com' }),
    });
    expect(placed.ok, server.output()).toBe(true);
    await finishedJobs(database, 2);
    const cron = (secret: string) =>
      app().request('/api/cron/queue', { headers: { authorization: `Bearer ${secret}` } });
    expect((await cron('undefined')).status).toBe(401);
    expect(await (await cron('secret')).json()).toMatchObject({ failed: 0, empty: true });
    server.signal('SIGTERM');
    expect(await server.ended, server.output()).toBe(0);
    expect(server.output()).toContain('A receipt for eve@example.com');
    expect(await database.client`select from queue_workers`).toHaveLength(0);
  });
});
