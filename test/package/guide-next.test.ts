import { expect, test } from 'vitest';
import { useTestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';
import { finishedJobs } from './support/finished-jobs.ts';
import { useGuideApp } from './support/guide-app.ts';

const database = useTestDatabase({ template: false });
// drizzle-orm 0.34 with drizzle-kit 0.25, postgres.js, and a database that is for the server only.
const app = useGuideApp({
  from: ['next'],
  guide: 'nextjs',
  env: () => ({ DATABASE_URL: database.url, CRON_SECRET: 'secret' }),
  envFile: '.env.local',
});

const ENQUEUE = `npx drizzle-queue enqueue send-receipt '{"orderId":1}'`;
const SELF_HOSTED = 'NEXT_MANUAL_SIG_HANDLE=true QUEUE_WORKER=1 node node_modules/next/dist/bin/next start';
const WORKER = 'node --import tsx --conditions=react-server --env-file=.env.local lib/worker.ts';

test('its first job is done by the commands of its guide', async () => {
  await app().follow('The first job');
  // The form, as a browser without JavaScript sends it.
  const page = await (await app().request('/')).text();
  const [, action = ''] = /name="(\$ACTION_ID_[^"]+)"/.exec(page) ?? [];
  expect(action, page).not.toBe('');
  const form = new FormData();
  form.set(action, '');
  form.set('email', 'ada@example.com');
  const placed = await app().request('/', { method: 'POST', body: form });
  expect(placed.status).toBe(200);
  expect(await finishedJobs(database, 1)).toEqual([{ kind: 'send-receipt', state: 'completed' }]);
  app().report('the first job was done');
  await until(() => app().running(WORKER).output().includes('A receipt for ada@example.com'));
  await app().stopAll();
});

test('a cron drains, a route drains after its response, and a worker in the server stops with it', async () => {
  await app().follow('On Vercel: a cron, and after the response');
  // The cron's job, which no worker has taken. Node.js has an advice for an app without a type, which would break it.
  expect(await app().shell(`${ENQUEUE} 2>&1`)).not.toContain('Warning');
  await app().follow('Self-hosted: a worker in instrumentation.ts');
  await app().stopAll();

  await app().launch('npx next start');
  const cron = (secret: string) =>
    app().request('/api/cron/queue', { headers: { authorization: `Bearer ${secret}` } });
  expect((await cron('undefined')).status).toBe(401);
  expect(await (await cron('secret')).json()).toMatchObject({ failed: 0, empty: true });
  await finishedJobs(database, 2);
  const order = () =>
    app().request('/api/orders', { method: 'POST', body: JSON.stringify({ email: 'eve@example.com' }) });
  expect((await order()).status).toBe(201);
  await finishedJobs(database, 3);
  await app().stopAll();

  const server = await app().launch(SELF_HOSTED);
  await app().shell(ENQUEUE);
  await finishedJobs(database, 4);
  server.signal('SIGTERM');
  expect(await server.ended, server.output()).toBe(0);
  expect(await database.client`select from queue_workers`).toHaveLength(0);
});
