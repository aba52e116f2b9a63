import { drizzle } from 'drizzle-orm/postgres-js';
import { createQueue, defineJob } from 'drizzle-queue';
import { createDashboard } from 'drizzle-queue/dashboard';
import postgres from 'postgres';
import { expect, onTestFinished, test, vi } from 'vitest';
import { get, page, post, textOf } from '../dashboard/support/visits.ts';
import { useTestDatabase } from '../support/test-database.ts';

const NAMES = ['a', 'b', 'c', 'd'] as const;
const databases = NAMES.map((name) => ({ name, at: useTestDatabase() }));
const BASE = '/admin';

test('one dashboard shows four databases, and the others while one is down', async () => {
  const shards = Object.fromEntries(
    databases.map(({ name, at }) => {
      const client = postgres(at.url, { max: 3, fetch_types: false, onnotice: () => {} });
      onTestFinished(() => client.end({ timeout: 1 }));
      return [name, { db: drizzle({ client }), queue: createQueue(), at }];
    }),
  );
  for (const [name, { db, queue }] of Object.entries(shards))
    await queue.enqueue(db, defineJob(`of-${name}`));
  const dashboard = createDashboard({
    queues: shards,
    basePath: BASE,
    authorize: (request) => (request.headers.get('x-user') === 'stranger' ? 'none' : 'write'),
    onAction: () => {},
  });
  for (const name of NAMES)
    expect(textOf(await page(dashboard, `${BASE}/~${name}/jobs`))).toContain(`of-${name}`);

  // The first, to which the base path leads.
  const [down, other] = databases;
  if (down === undefined || other === undefined) throw new Error('there are four');
  const { client } = other.at;
  await client`alter database ${client(down.at.name)} allow_connections false`;
  await client`select pg_terminate_backend(pid) from pg_stat_activity where datname = ${down.at.name}`;
  const printed = vi.spyOn(console, 'error').mockImplementation(() => {});
  onTestFinished(() => printed.mockRestore());

  // What it has just found, it would answer from memory.
  const failed = await get(dashboard, `${BASE}/~a/jobs?q=kind:other`);
  expect(failed.status).toBe(500);
  const html = await failed.text();
  for (const name of ['b', 'c', 'd']) {
    expect(html).toContain(`href="${BASE}/~${name}"`);
    expect(textOf(await page(dashboard, `${BASE}/~${name}/jobs`))).toContain(`of-${name}`);
  }
  expect((await post(dashboard, `${BASE}/~b/actions/pause`, { queue: 'default' })).status).toBe(303);
  expect(await shards.b?.queue.paused(shards.b.db)).toMatchObject([{ queue: 'default' }]);

  const refused = await get(dashboard, `${BASE}/~a/jobs`, { 'x-user': 'stranger' });
  expect(refused.status).toBe(403);
  expect(await refused.text()).not.toContain('/~b');

  await client`alter database ${client(down.at.name)} allow_connections true`;
  expect(textOf(await page(dashboard, `${BASE}/~a/jobs`))).toContain('of-a');
});
