import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createRequire } from 'node:module';
import { createServer } from 'node:net';
import { beforeAll, expect, onTestFinished, test } from 'vitest';
import { useCli } from '../cli/support/build-cli.ts';
import { runCli, startCli } from '../cli/support/run-cli.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';
import { useRedis, WITHOUT_REDIS } from './redis.ts';
import { fill, pgBoss } from './systems.ts';

const database = useTestDatabase();
const redis = useRedis();
const cli = useCli();
const require = createRequire(new URL('../../bench/package.json', import.meta.url));
let cwd: string;

const run = (...args: string[]) =>
  runCli(cli.bin, ['import', ...args], { cwd, env: { DATABASE_URL: database.url } });

beforeAll(async () => {
  cwd = await cli.project({
    'queue.config.ts': `
      import { drizzle } from 'drizzle-orm/postgres-js';
      import { createQueue, defineJob, unvalidated } from 'drizzle-queue';
      import { defineConfig } from 'drizzle-queue/config';
      const db = drizzle(process.env.DATABASE_URL!);
      const sendMail = defineJob('send-mail', { payload: unvalidated<object>() });
      export default defineConfig({ db, queue: createQueue(), jobs: [sendMail] });`,
    'node_modules/bullmq/package.json': '{ "main": "bullmq.cjs" }',
    'node_modules/bullmq/bullmq.cjs': `module.exports = require(${JSON.stringify(require.resolve('bullmq'))})`,
  });
});

async function kinds() {
  return await database.client`select kind, count(*)::int as jobs from queue_jobs group by 1 order by 1`;
}

test('refuses a name of --map or --column that stands twice: the last would silently win', async () => {
  const maps = ['--map', 'mail=send-mail', '--map', 'mail=send-mail', '--dry-run'];
  expect(await run('pg-boss', ...maps)).toMatchObject({
    code: 2,
    stderr: 'drizzle-queue: --map has mail twice\n',
  });
  const columns = ['--column', 'payload=a', '--column', 'payload=b', '--where', 'true', '--dry-run'];
  expect(await run('table', '--table', 'tasks', '--name', 'mail', ...columns)).toMatchObject({
    code: 2,
    stderr: 'drizzle-queue: --column has payload twice\n',
  });
});

test('shows what would come, and does it when it is told to', async () => {
  const jobs = [1, 2, 3].map((n) => ({ n, priority: 0 }));
  await fill(
    pgBoss,
    { url: database.url, queue: '' },
    { failing: [], jobs, others: [{ queue: 'unknown', data: {} }] },
  );
  const planned = await run('pg-boss', '--map', 'mail=send-mail', '--dry-run');
  expect(planned).toMatchObject({ code: 0, stderr: '' });
  expect(planned.stdout).toMatch(
    /NAME +KIND +WAITING +DELAYED +RETRYING +LEFT\nmail +send-mail +3 +0 +0 +0\n/,
  );
  expect(planned.stdout).toMatch(/\nunknown +– +0 +0 +0 +1\n/);
  expect(planned.stdout).toContain('3 would be imported, 1 left, 0 held by its workers.');
  // Nobody can answer.
  expect(await run('pg-boss', '--map', 'mail=send-mail')).toMatchObject({ code: 2 });
  expect(await kinds()).toEqual([]);
  const done = await run('pg-boss', '--map', 'mail=send-mail', '--yes', '--json');
  expect(done).toMatchObject({ code: 0, stderr: '' });
  expect(JSON.parse(done.stdout)).toMatchObject({ version: 1, dryRun: false, imported: 3, left: 1 });
  expect(await kinds()).toEqual([{ kind: 'send-mail', jobs: 3 }]);
});

test('takes a table of the app by SQL', async () => {
  const table = `old_${randomBytes(3).toString('hex')}`;
  await database.client.unsafe(`
    create table ${table} (id serial, type text, data jsonb, status text, most int default 32767);
    insert into ${table} (type, data, status) values ('send-mail', '{"a": 1}', 'pending'), ('send-mail', '{}', 'done')`);
  const flags = [
    '--table',
    table,
    '--where',
    "status = 'pending'",
    '--column',
    'payload=data',
    '--column',
    'name=type',
    '--column',
    'maxAttempts=most',
  ];
  const done = await run('table', ...flags, '--yes');
  expect(done).toMatchObject({ code: 0, stderr: '' });
  expect(done.stdout).toContain('1 imported, 0 left');
  expect(done.stdout).toContain('1 of them had more than 10,000 attempts there');
  expect(await database.client.unsafe(`select status from ${table}`)).toEqual([{ status: 'done' }]);
});

test.each(['interrupted', 'failed'] as const)('says what was done before it was %s', async (stopped) => {
  const { client } = database;
  const [table, doubt] = ['old', 'doubt'].map((name) => `${name}_${randomBytes(3).toString('hex')}`);
  await client`truncate queue_jobs`;
  await client.unsafe(`
    create table ${table} (id serial, payload jsonb);
    insert into ${table} (payload) select jsonb_build_object('n', n) from generate_series(1, 200) as n;
    create function ${doubt}() returns trigger language plpgsql as $$ begin
      if (new.payload ->> 'n')::int = 3 and '${stopped}' = 'failed' then raise 'no third one'; end if;
      perform pg_sleep(0.1);
      return new;
    end $$;
    create trigger doubt before insert on queue_jobs for each row execute function ${doubt}();`);
  const flags = ['--table', String(table), '--where', 'true', '--name', 'send-mail', '--batch-size', '1'];
  const options = { cwd, env: { DATABASE_URL: database.url } };
  const importing = startCli(cli.bin, ['import', 'table', ...flags, '--yes', '--json'], options);
  const rows = async () => Number((await client`select count(*)::int as jobs from queue_jobs`)[0]?.jobs);
  await until(async () => (await rows()) > 1);
  if (stopped === 'interrupted') importing.child.kill('SIGINT');
  const { code, stdout, stderr } = await importing.end();
  await client.unsafe(`drop trigger doubt on queue_jobs`);
  const imported = await rows();
  expect(imported).toBeLessThan(200);
  expect(JSON.parse(stdout)).toEqual({ version: 1, stopped, imported, left: 0 });
  if (stopped === 'interrupted') {
    expect({ code, stderr }).toEqual({
      code: 130,
      stderr: `Interrupted: ${imported} imported; the others were not moved.\n`,
    });
  } else {
    expect({ code, stderr }).toEqual({
      code: 1,
      stderr: 'Failed. Before that: 2 imported.\ndrizzle-queue: no third one\n',
    });
  }
});

/** The address of a server that takes connections, and says nothing. */
async function silent(): Promise<string> {
  const server = createServer();
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  const address = server.address();
  return `redis://127.0.0.1:${typeof address === 'object' ? address?.port : address}`;
}

test.each([
  ['refuses connections', () => 'redis://127.0.0.1:1', /ECONNREFUSED/],
  ['is silent', silent, /no connection/],
  ['does not exist', () => 'redis://nowhere.invalid', /ENOTFOUND|EAI_AGAIN/],
])('ends with 1 where Redis %s', async (_, url, why) => {
  const began = performance.now();
  for (const last of ['--dry-run', '--yes']) {
    const ended = await run('bullmq', '--queue', 'mail', '--redis', await url(), last);
    expect(ended).toMatchObject({ code: 1, stdout: '', stderr: expect.stringMatching(why) });
    expect(ended.stderr).toMatch(/^drizzle-queue: importJobs: .*\n$/);
  }
  expect(performance.now() - began).toBeLessThan(60_000);
});

test.skipIf(WITHOUT_REDIS !== undefined)('moves the jobs of BullMQ on Redis', async () => {
  const { Queue } = require('bullmq');
  const name = `q${randomBytes(4).toString('hex')}`;
  const queue = new Queue(name, { connection: { url: redis.url } });
  await queue.add('send-mail', { n: 1 });
  await queue.close();
  const { stdout, ...ended } = await run('bullmq', '--queue', name, '--redis', redis.url, '--yes');
  expect(ended).toEqual({ code: 0, stderr: '' });
  expect(stdout).toContain('1 imported, 0 left');
});

test.each([
  [['rabbit'], 'import takes pg-boss, graphile-worker, bullmq, table; got rabbit'],
  [['pg-boss', '--redis', 'redis://x'], 'import pg-boss does not take --redis'],
  [['bullmq'], 'import bullmq needs --queue'],
  [['table'], 'import table needs --table and --where'],
  [['pg-boss', '--map', 'mail'], '--map takes name=kind'],
  [['pg-boss', '--map', 'mail=send-mal'], "has no definition of 'send-mal' (did you mean send-mail?)"],
])('refuses %j with 2', async (args, message) => {
  expect(await run(...args)).toMatchObject({ code: 2, stderr: expect.stringContaining(message) });
});
