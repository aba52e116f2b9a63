import { createQueue } from 'drizzle-queue';
import { type ActionDone, createDashboard, type Dashboard } from 'drizzle-queue/dashboard';
import { createQueueTables } from 'drizzle-queue/schema';
import { beforeAll, expect, test } from 'vitest';
import { addJob } from '../queries/support/jobs.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { formsOf, get, ORIGIN, page, post, textOf } from './support/visits.ts';

const database = useTestDatabase();
const main = createQueue();
const reports = createQueue({ tables: createQueueTables({ prefix: 'report_' }) });
const done: ActionDone[] = [];
const asked: (string | undefined)[] = [];

let dashboard: Dashboard;

const create = () =>
  createDashboard({
    queues: { main: { db: database.db, queue: main }, 'eu-1': { db: database.db, queue: reports } },
    basePath: '/admin',
    authorize: (_, name) => {
      asked.push(name);
      return name === 'main' ? 'write' : { can: { pause: true } };
    },
    onAction: (action) => void done.push(action),
  });

beforeAll(async () => {
  dashboard = create();
  for (const table of ['jobs', 'results', 'workers', 'pauses'])
    await database.client.unsafe(`create table report_${table} (like queue_${table} including all)`);
  await addJob(database.client, { kind: 'of-main' });
});

test('each has its own pages, with a switch between them', async () => {
  const html = await page(dashboard, '/admin/~main/jobs');
  expect(textOf(html)).toContain('of-main');
  expect(html).toMatch(/<a href="\/admin\/~eu-1">eu-1<\/a>/);
  expect(html).toMatch(/<a href="\/admin\/~main" aria-current="true">main<\/a>/);
  expect(html).toContain('href="/admin/~main/errors"');
  const other = await page(dashboard, '/admin/~eu-1/jobs');
  expect(textOf(other)).toContain('No job yet');
  // Also where a router has taken the base path off.
  expect(textOf(await page(dashboard, '/~main/jobs'))).toContain('of-main');
  const [, style = ''] = /href="([^"]+\.css)"/.exec(other) ?? [];
  expect((await get(dashboard, style)).status).toBe(200);
});

test('without a name it leads to the first; a name that is none is not there', async () => {
  for (const path of ['/admin', '/admin/', '/']) {
    const answer = await get(dashboard, path);
    expect([answer.status, answer.headers.get('location')], path).toEqual([303, '/admin/~main']);
  }
  for (const path of ['/admin/jobs', '/admin/~other', '/admin/~mainly/jobs', '/admin/~constructor'])
    expect((await get(dashboard, path)).status, path).toBe(404);
  expect((await post(dashboard, '/admin/actions/pause', { queue: 'q' })).status).toBe(404);
});

test('rights, actions and the audit are of the one that is meant', async () => {
  asked.length = 0;
  const [form] = formsOf(await page(dashboard, '/admin/~main/queues'));
  expect(form?.action).toBe('/admin/~main/actions/pause');
  const answer = await post(dashboard, '/admin/~eu-1/actions/pause', { ...form?.fields, queue: 'nightly' });
  expect(answer.headers.get('location')).toBe('/admin/~eu-1/queues?done=paused');
  expect(await main.paused(database.db)).toEqual([]);
  expect(await reports.paused(database.db)).toMatchObject([{ queue: 'nightly' }]);
  expect((await post(dashboard, '/admin/~eu-1/actions/resume', { queue: 'nightly' })).status).toBe(403);
  expect(asked).toEqual(['main', 'eu-1', 'eu-1']);
  expect(done).toMatchObject([{ name: 'eu-1', action: 'pause', target: { queue: 'nightly' } }]);
  const forged = await post(dashboard, '/admin/~main/actions/pause', { queue: 'q' }, { origin: 'https://e' });
  expect(forged.status).toBe(403);
  expect(new URL(String(answer.headers.get('location')), ORIGIN).origin).toBe(ORIGIN);
});

test('options that are wrong are refused at once', () => {
  const { db } = database;
  const cases: readonly (readonly [options: object, message: string])[] = [
    [{ queues: {} }, 'queues must have at least one queue'],
    [{ queues: { 'a/b': { db, queue: main } } }, 'of letters, digits, _ and -'],
    [{ queues: { '': { db, queue: main } } }, 'of letters, digits, _ and -'],
    [{ queues: { a: { db } } }, 'a: queue must be what createQueue() returns'],
    [{ queues: { a: { queue: main } } }, 'a: db must be a Drizzle database'],
    [{ queues: { a: { db, queue: main } }, db }, 'queues and db cannot be combined'],
    [{ queues: [] }, 'queues must have at least one queue'],
    [{ queue: main }, 'db must be a Drizzle database'],
  ];
  for (const [options, message] of cases) {
    // @ts-expect-error They are wrong.
    expect(() => createDashboard({ authorize: () => 'read', ...options })).toThrow(message);
  }
});
