import { createQueue, defineJob, unvalidated } from 'drizzle-queue';
import { beforeAll, beforeEach, expect, onTestFinished, test } from 'vitest';
import { useCli } from '../cli/support/build-cli.ts';
import { runCli, startCli } from '../cli/support/run-cli.ts';
import { clearTables } from '../queries/support/jobs.ts';
import { useTestDatabase } from '../support/test-database.ts';

const NAMES = ['a', 'b', 'c', 'd'] as const;
const databases = NAMES.map((name) => ({ name, at: useTestDatabase(), queue: createQueue() }));
const greet = defineJob('greet', { payload: unvalidated<{ name: string }>() });
const cli = useCli();
let cwd: string;

const app = {
  'queue.config.mjs': `
    import { defineConfig } from 'drizzle-queue/config';
    import { drizzle } from 'drizzle-orm/postgres-js';
    import { createQueue, defineJob, handle, unvalidated } from 'drizzle-queue';
    import postgres from 'postgres';
    const greet = defineJob('greet', { payload: unvalidated() });
    const shard = (url) => ({ db: drizzle({ client: postgres(url, { fetch_types: false }) }), queue: createQueue() });
    const urls = process.env.SHARD_URLS.split(' ');
    export default defineConfig({
      shards: { a: shard(urls[0]), b: shard(urls[1]), c: shard(urls[2]), d: shard(urls[3]) },
      handlers: [handle(greet, ({ payload }) => console.log('Hello ' + payload.name))],
      worker: { concurrency: 3, each: (shard) => ({ name: 'worker of ' + shard }) },
    });`,
};

const env = () => ({ SHARD_URLS: databases.map(({ at }) => at.url).join(' ') });
const run = (...args: string[]) => runCli(cli.bin, args, { cwd, env: env() });
const enqueueAll = async () => {
  for (const { name, at, queue } of databases) await queue.enqueue(at.db, greet, { name: `job of ${name}` });
};

beforeAll(async () => {
  cwd = await cli.project(app);
});
beforeEach(async () => {
  for (const { at } of databases) await clearTables(at.client);
});

test('work works on all of them until SIGTERM, with the settings of each, and leaves nothing', async () => {
  const working = startCli(cli.bin, ['work', '--concurrency', '5'], { cwd, env: env() });
  await enqueueAll();
  for (const name of NAMES) {
    await working.says(`Hello job of ${name}`);
    await working.says(
      new RegExp(`${name}: worker \\d+ \\(worker of ${name}\\) started, listening: default \\(5\\)`),
    );
  }
  working.child.kill('SIGTERM');
  expect(await working.end()).toMatchObject({ code: 0 });
  for (const { at } of databases) expect(await at.client`select from queue_workers`).toHaveLength(0);
});

test('work --watch names the workers of an app, and says which shard has a job that failed', async () => {
  const settings = "worker: { name: 'shop', each: (shard) => (shard === 'b' ? { name: 'own' } : {}) }";
  const config = app['queue.config.mjs']
    .replace(/worker: .*,/, `${settings},`)
    .replace("console.log('Hello ' + payload.name)", "{ throw new Error('no ' + payload.name); }");
  const folder = await cli.project({ ...app, 'queue.config.mjs': config });
  const working = startCli(cli.bin, ['work', '--watch'], { cwd: folder, env: env() });
  const [a] = databases;
  if (a === undefined) throw new Error('there are four');
  await a.queue.enqueue(a.at.db, greet, { name: 'job of a' });
  await working.says(/^a: drizzle-queue: job \d+ \(greet\) failed at attempt 1 of 20, and will be retried/m);
  await working.says(/^a: drizzle-queue: worker \d+ \(shop\/a\) started/m);
  await working.says(/^b: drizzle-queue: worker \d+ \(own\) started/m);
  working.child.kill('SIGINT');
  expect(await working.end()).toMatchObject({ code: 0 });
});

test('work leaves the settings of all to a shard for which each returns them as undefined', async () => {
  const settings = `worker: {
    name: 'shop', concurrency: 2, listen: false,
    each: () => ({ name: undefined, concurrency: undefined, listen: undefined }),
  }`;
  const config = app['queue.config.mjs'].replace(/worker: .*,/, `${settings},`);
  const folder = await cli.project({ ...app, 'queue.config.mjs': config });
  const working = startCli(cli.bin, ['work'], { cwd: folder, env: env() });
  for (const name of NAMES) {
    await working.says(
      new RegExp(`${name}: worker \\d+ \\(shop/${name}\\) started, polling: default \\(2\\)`),
    );
  }
  working.child.kill('SIGTERM');
  expect(await working.end()).toMatchObject({ code: 0 });
});

test('work --shard works on one', async () => {
  await enqueueAll();
  const { code, stdout } = await run('work', '--drain', '--shard', 'c');
  expect({ code, stdout }).toEqual({
    code: 0,
    stdout: 'Hello job of c\n1 completed, 0 failed, 0 discarded\n',
  });
});

test('work --drain drains the others while one is down, and says which', async () => {
  const [down, other] = databases;
  if (down === undefined || other === undefined) throw new Error('there are four');
  await enqueueAll();
  const { client } = other.at;
  await client`alter database ${client(down.at.name)} allow_connections false`;
  onTestFinished(async () => {
    await client`alter database ${client(down.at.name)} allow_connections true`;
  });
  const { code, stdout, stderr } = await run('work', '--drain');
  expect(code).toBe(1);
  expect(stdout.trim().split('\n').sort()).toEqual([
    '3 completed, 0 failed, 0 discarded',
    ...['b', 'c', 'd'].map((name) => `Hello job of ${name}`),
  ]);
  expect(stderr).toMatch(/^a: .*not currently accepting connections/m);
});

test('dashboard has a switch between them', async () => {
  const serving = startCli(cli.bin, ['dashboard', '--port', '0', '--json'], { cwd, env: env() });
  await serving.says('"url"');
  const { url } = JSON.parse(serving.stdout());
  const opened = await fetch(url, { redirect: 'manual' });
  const cookie = opened.headers.get('set-cookie')?.split(';')[0] ?? '';
  const first = await fetch(new URL(opened.headers.get('location') ?? '', url), { headers: { cookie } });
  expect(first.status).toBe(200);
  const html = await first.text();
  for (const name of NAMES) expect(html).toContain(`/~${name}"`);
  serving.child.kill('SIGINT');
  expect(await serving.end()).toMatchObject({ code: 0 });
});

test('the other commands are about the one that --shard names', async () => {
  await enqueueAll();
  const { code, stdout } = await run('status', '--shard', 'b', '--json');
  expect(code).toBe(0);
  expect(JSON.parse(stdout)).toMatchObject({ queues: [{ queue: 'default', due: 1 }] });
  for (const [args, why] of [
    [['status'], 'has several databases; say which one: --shard a, --shard b, --shard c, --shard d'],
    [['status', '--shard', 'aa'], "has no shard 'aa' (did you mean a?)"],
    [['status', '--shard', 'constructor'], "has no shard 'constructor'"],
    [['work', '--url', databases[0]?.at.url ?? ''], 'say whose queue is at --url'],
  ] as const) {
    const ended = await run(...args);
    expect(ended).toMatchObject({ code: 2, stdout: '' });
    expect(ended.stderr).toContain(why);
  }
  const given = await run('status', '--shard', 'b', '--url', databases[2]?.at.url ?? '', '--json');
  expect(given).toMatchObject({ code: 0 });
});
