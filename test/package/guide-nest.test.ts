import { expect, test } from 'vitest';
import { useTestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';
import { finishedJobs } from './support/finished-jobs.ts';
import { useGuideApp } from './support/guide-app.ts';

const database = useTestDatabase({ template: false });
// CommonJS, node-postgres, Jest, and the resolution of modules that Nest's own starter has.
const app = useGuideApp({ from: ['nest'], guide: 'nestjs', env: () => ({ DATABASE_URL: database.url }) });

const ORDER =
  'curl -sf -X POST localhost:3000/orders -H \'content-type: application/json\' -d \'{"email":"eve@example.com"}\'';

test('its first job is done by the commands of its guide', async () => {
  await app().follow('The first job');
  expect(await finishedJobs(database, 1)).toEqual([{ kind: 'send-receipt', state: 'completed' }]);
  app().report('the first job was done');
  const worker = app().running('node dist/worker');
  await until(() => worker.output().includes('A receipt for ada@example.com'));
  // As the page says: the hooks end the worker before the pool.
  worker.signal('SIGTERM');
  await worker.ended;
  expect(worker.output()).not.toMatch(/error/i);
  expect(await database.client`select from queue_workers`).toHaveLength(0);
});

test('a worker inside the server works and stops with it', async () => {
  await app().stopAll();
  await app().follow('A worker inside the server');
  const server = await app().launch('node dist/main');
  await app().shell(ORDER);
  await finishedJobs(database, 2);
  server.signal('SIGTERM');
  await server.ended;
  expect(server.output()).toContain('A receipt for eve@example.com');
  expect(await database.client`select from queue_workers`).toHaveLength(0);
});

test('the end-to-end test of its guide passes in Jest', async () => {
  await app().stopAll();
  await app().follow('An end-to-end test');
  expect(await finishedJobs(database, 3)).toHaveLength(3);
});
