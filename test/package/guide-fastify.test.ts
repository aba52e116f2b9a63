import { expect, test } from 'vitest';
import { useTestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';
import { finishedJobs } from './support/finished-jobs.ts';
import { useGuideApp } from './support/guide-app.ts';

const database = useTestDatabase({ template: false });
const app = useGuideApp({
  from: ['fastify'],
  guide: 'fastify',
  env: () => ({ DATABASE_URL: database.url }),
});

const SERVER = 'node --env-file=.env src/server.ts';
const WORKER = 'node --env-file=.env src/worker.ts';
const ORDER =
  'curl -sf -X POST localhost:3000/orders -H \'content-type: application/json\' -d \'{"email":"eve@example.com"}\'';

test('its first job is done by the commands of its guide', async () => {
  await app().follow('The first job');
  expect(await finishedJobs(database, 1)).toEqual([{ kind: 'send-receipt', state: 'completed' }]);
  app().report('the first job was done');
  await until(() => app().running(WORKER).output().includes('A receipt for ada@example.com'));
  await app().shell('npx tsc');
});

test('a worker inside the server works and stops with it', async () => {
  await app().stopAll();
  await app().follow('A worker inside the server');
  await app().shell('npx tsc');
  const server = await app().launch(SERVER);
  await app().shell(ORDER);
  await finishedJobs(database, 2);
  server.signal('SIGTERM');
  expect(await server.ended, server.output()).toBe(0);
  expect(server.output()).toContain('A receipt for eve@example.com');
  expect(await database.client`select from queue_workers`).toHaveLength(0);
});
