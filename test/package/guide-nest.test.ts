import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
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

/** Changes a file of the app, which must contain what is to be replaced. */
async function edit(path: string, replacements: Readonly<Record<string, string>>): Promise<void> {
  const file = join(app().directory, path);
  let text = await readFile(file, 'utf8');
  for (const [from, to] of Object.entries(replacements)) {
    expect(text).toContain(from);
    text = text.replaceAll(from, to);
  }
  await writeFile(file, text);
}

test.each([
  ['as the guide stops its worker', {}, []],
  [
    'with a worker that is stopped too late',
    { OnModuleDestroy: 'BeforeApplicationShutdown', onModuleDestroy: 'beforeApplicationShutdown' },
    ['The pool was ended before worker.stop()'],
  ],
])(
  'no job runs twice at a deploy of an app that ends its pool in onModuleDestroy, %s',
  async (_, hooks, said) => {
    await app().stopAll();
    await app().follow('The first job');
    await app().stopAll();
    await app().follow('A worker inside the server');
    await edit('src/db/db.module.ts', {
      OnApplicationShutdown: 'OnModuleDestroy',
      onApplicationShutdown: 'onModuleDestroy',
    });
    await edit('src/queue/worker.service.ts', hooks);
    await edit('src/queue/handlers.ts', {
      'this.logger.log(': `this.logger.log(\`Begun: \${order.email}\`);
      await new Promise((resolve) => setTimeout(resolve, 1_000));
      this.logger.log(`,
    });
    await app().shell('npm run build');
    await database.client`truncate queue_jobs, queue_results`;

    const old = await app().launch('node dist/main');
    await app().shell(ORDER);
    await until(() => old.output().includes('Begun: eve@example.com'));
    old.signal('SIGTERM');
    await old.ended;
    // Each error of a worker to which nothing listens begins like this.
    expect(old.output().match(/drizzle-queue worker:/g) ?? []).toHaveLength(said.length);
    for (const error of said) expect(old.output()).toContain(error);

    await app().launch('node dist/main');
    await finishedJobs(database, 1);
    expect(await database.client`select state, attempt from queue_results`).toEqual([
      { state: 'completed', attempt: 1 },
    ]);
    expect(await database.client`select from queue_workers`).toHaveLength(1);
  },
);

test('the end-to-end test of its guide passes in Jest', async () => {
  await app().stopAll();
  await database.client`truncate queue_jobs, queue_results`;
  await app().follow('The first job');
  await finishedJobs(database, 1);
  await app().stopAll();
  await app().follow('An end-to-end test');
  expect(await finishedJobs(database, 2)).toHaveLength(2);
});
