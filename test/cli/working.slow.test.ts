import * as fs from 'node:fs';
import { mkdir, readdir, readlink, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import {
  createQueue,
  defineJob,
  defineSchedule,
  handle,
  runNext,
  schedulesIn,
  unvalidated,
} from 'drizzle-queue';
import { queueSchedules } from 'drizzle-queue/schema/control';
import { beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { clearTables } from '../queries/support/jobs.ts';
import { addControlTables } from '../support/control-tables.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';
import { useCli } from './support/build-cli.ts';
import { hasTerminal, runCli, startCli, startInTerminal } from './support/run-cli.ts';

const database = useTestDatabase();
const cli = useCli();
const queue = createQueue();
let cwd: string;

/** An app without a loader, which takes seconds of each start on a busy machine. */
const app = {
  'queue.config.mjs': `
    import { defineConfig } from 'drizzle-queue/config';
    import { db } from './src/db.mjs';
    import { greet, queue } from './src/jobs.mjs';
    export default defineConfig({
      db,
      queue,
      jobs: [greet],
      handlers: async () => (await import('./src/handlers.mjs')).handlers,
    });`,
  'src/db.mjs': `
    import { drizzle } from 'drizzle-orm/node-postgres';
    import pg from 'pg';
    export const db = drizzle(new pg.Pool({ connectionString: process.env.SHOP_URL }));`,
  'src/jobs.mjs': `
    import { createQueue, defineJob, schedulesIn } from 'drizzle-queue';
    import { queueSchedules } from 'drizzle-queue/schema/control';
    const validate = (value) =>
      typeof value?.name === 'string' ? { value } : { issues: [{ message: 'expected a text', path: ['name'] }] };
    export const queue = createQueue({ schedules: schedulesIn(queueSchedules) });
    export const greet = defineJob('greet', { payload: { '~standard': { version: 1, vendor: 'test', validate } } });`,
  'src/handlers.mjs': `
    import { fail, handle, NonRetryableError } from 'drizzle-queue';
    import { greet } from './jobs.mjs';
    export const handlers = [
      handle(greet, ({ payload }) =>
        payload.name === 'nobody' ? fail(new NonRetryableError('who?')) : console.log('Hello ' + payload.name)),
    ];`,
};

const env = () => ({ SHOP_URL: database.url });
const run = (...args: string[]) => runCli(cli.bin, args, { cwd, env: env() });
const enqueue = (name: string, ...args: string[]) =>
  run('enqueue', 'greet', JSON.stringify({ name }), ...args);

beforeAll(async () => {
  await addControlTables(database);
  cwd = await cli.project(app);
});
beforeEach(async () => {
  await clearTables(database.client);
  await database.client`truncate queue_schedules`;
});

describe('enqueue', () => {
  test('goes through the definition', async () => {
    const { code, stdout, stderr } = await enqueue('Ada', '--priority', '0', '--key', '-x', '--json');
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    const { id, duplicate } = JSON.parse(stdout);
    expect(duplicate).toBe(false);
    expect(await queue.find(database.db, id)).toMatchObject({
      payload: { name: 'Ada' },
      priority: 0,
      uniqueKey: '-x',
    });
    expect(await enqueue('Eve', '--key', '-x')).toMatchObject({
      code: 0,
      stdout: `Job ${id} already has this key.\n`,
    });
  });

  test('refuses what the definition refuses, and what nobody defines', async () => {
    expect(await run('enqueue', 'greet', '{"name":7}')).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/^drizzle-queue: The payload of 'greet' is invalid: name: .*\n$/),
    });
    expect(await run('enqueue', 'greet', '{"name":"\\u0000"}')).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('NUL'),
    });
    expect(await run('enqueue', 'greet', '{')).toMatchObject({ code: 2 });
    expect(await run('enqueue', 'gret', '{}')).toMatchObject({
      code: 2,
      stderr: "drizzle-queue: queue.config.ts has no definition of 'gret' (did you mean greet?)\n",
    });
    expect((await queue.list(database.db)).jobs).toEqual([]);
  });

  test('works where the queue requires a transaction', async () => {
    const jobs = app['src/jobs.mjs'].replace('createQueue({', 'createQueue({ requireTransaction: true,');
    const folder = await cli.project({ ...app, 'src/jobs.mjs': jobs });
    expect(jobs).toContain('requireTransaction');
    const ended = await runCli(cli.bin, ['enqueue', 'greet', '{"name":"Ada"}'], { cwd: folder, env: env() });
    expect(ended).toMatchObject({ code: 0, stdout: expect.stringMatching(/^Enqueued job \d+\.$/m) });
  });

  test('is due at a time, and not at what another command takes for hours ago', async () => {
    const { stdout } = await enqueue('Ada', '--run-at', '2100-01-01', '--json');
    const { runAt } = (await queue.find(database.db, JSON.parse(stdout).id)) ?? {};
    expect(runAt).toEqual(new Date('2100-01-01T00:00:00Z'));
    expect(await enqueue('Ada', '--run-at', '2h')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('for 2h from now on, use --delay'),
    });
    expect(await enqueue('Ada', '--run-at', '2')).toMatchObject({ code: 2 });
    expect((await queue.list(database.db)).jobs).toHaveLength(1);
  });

  test('reads what is piped in', async () => {
    const piped = await runCli(cli.bin, ['enqueue', 'greet', '-'], {
      cwd,
      env: env(),
      input: '{ "name": "Bob" }',
    });
    expect(piped).toMatchObject({ code: 0, stdout: expect.stringMatching(/^Enqueued job \d+\.\n$/) });
  });
});

describe('work', () => {
  test('works until SIGTERM, and leaves nothing', async () => {
    await enqueue('Ada');
    const working = startCli(cli.bin, ['work'], { cwd, env: env() });
    await working.says('Hello Ada');
    await enqueue('Bob');
    await working.says('Hello Bob');
    working.child.kill('SIGTERM');
    expect(await working.end()).toMatchObject({ code: 0 });
    expect(await database.client`select from queue_workers`).toHaveLength(0);
  });

  test.skipIf(!hasTerminal)('ends with Ctrl-C in a terminal', async () => {
    const working = startInTerminal(cli.bin, ['work'], { cwd, env: env() });
    await enqueue('Ada');
    await working.says('Hello Ada');
    working.write('\u0003');
    expect(await working.end()).toMatchObject({ code: 0 });
    expect(await database.client`select from queue_workers`).toHaveLength(0);
  });

  test('--drain ends when nothing is due', async () => {
    await enqueue('Ada');
    await enqueue('nobody');
    const { code, stdout } = await run('work', '--drain');
    expect({ code, stdout }).toEqual({ code: 0, stdout: 'Hello Ada\n1 completed, 1 failed, 1 discarded\n' });
  });

  test.each(['--drain', '--watch --drain'])('%s gives jobs back at SIGINT', async (options) => {
    const folder = await cli.project({
      ...app,
      'src/handlers.mjs': `
        import { handle } from 'drizzle-queue';
        import { greet } from './jobs.mjs';
        export const handlers = [
          handle(greet, ({ payload, signal }) => {
            console.log('Hello ' + payload.name);
            return new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
          }),
        ];`,
    });
    const { id } = JSON.parse((await enqueue('Ada', '--json')).stdout);
    const working = startCli(cli.bin, ['work', ...options.split(' ')], { cwd: folder, env: env() });
    await working.says('Hello Ada');
    working.child.kill('SIGINT');
    const { code, stdout } = await working.end();
    expect({ code, stdout }).toEqual({
      code: options === '--drain' ? 130 : 0,
      stdout: 'Hello Ada\n0 completed, 0 failed, 0 discarded\n',
    });
    expect(await queue.find(database.db, id)).toMatchObject({ state: 'due', attempt: 0, errors: [] });
    expect(await database.client`select from queue_workers`).toHaveLength(0);
    expect(await processesIn(folder)).toEqual([]);
  });

  test('--watch starts again when a file changes, and outlives a mistake in it', async () => {
    const folder = await cli.project(app);
    const handlers = join(folder, 'src/handlers.mjs');
    const working = startCli(cli.bin, ['work', '--watch'], { cwd: folder, env: env() });
    await enqueue('Ada');
    await working.says('Hello Ada');
    await writeFile(handlers, 'this is no program');
    await working.says('The worker has stopped');
    await writeFile(handlers, app['src/handlers.mjs'].replace('Hello', 'Good morning'));
    await enqueue('Bob');
    await working.says('Good morning Bob');
    const failing = app['src/handlers.mjs'].replace("new NonRetryableError('who?')", "new Error('not yet')");
    await writeFile(handlers, failing);
    await enqueue('nobody');
    await working.says(/drizzle-queue: job \d+ \(greet\) failed at attempt 1 of 20, and will be retried/);
    working.child.kill('SIGINT');
    expect(await working.end()).toMatchObject({ code: 0 });
    expect(await database.client`select from queue_workers`).toHaveLength(0);
    expect(await processesIn(folder)).toEqual([]);
    await database.client`delete from queue_jobs`;
  });

  test('--watch sees folders that come, and that come back', async () => {
    const reading = `
    import { existsSync } from 'node:fs';
    const added = new URL('../more/added.mjs', import.meta.url);
    if (existsSync(added)) console.log((await import(added)).text);`;
    const folder = await cli.project({ ...app, 'src/handlers.mjs': reading + app['src/handlers.mjs'] });
    const more = join(folder, 'more');
    const working = startCli(cli.bin, ['work', '--watch'], { cwd: folder, env: env() });
    await working.says(/worker \d+ .*started/);
    for (const name of ['first', 'second']) {
      await mkdir(more);
      for (const version of ['once', 'twice']) {
        await writeFile(join(more, 'added.mjs'), `export const text = '${name}, ${version}';`);
        await working.says(`${name}, ${version}`);
      }
      await rm(more, { recursive: true });
    }
    working.child.kill('SIGINT');
    expect((await working.end()).code).toBe(0);
  });

  test('--watch sees files beside the config, from whatever folder it is called', async () => {
    const folder = await cli.project({ ...app, 'bin/work.sh': '' });
    const cwd = join(folder, 'bin');
    const working = startCli(cli.bin, ['work', '--watch'], { cwd, env: env() });
    await working.says('started, listening');
    await writeFile(join(folder, 'src/handlers.mjs'), app['src/handlers.mjs'].replace('Hello', 'Hi'));
    await working.says('A file has changed');
    await enqueue('Ada');
    await working.says('Hi Ada');
    working.child.kill('SIGINT');
    expect(await working.end()).toMatchObject({ code: 0 });
    expect(await processesIn(cwd)).toEqual([]);
  });

  test('-w among other short options starts one child', async () => {
    const folder = await cli.project(app);
    const working = startCli(cli.bin, ['work', '-wc', '5', '-q', 'default'], { cwd: folder, env: env() });
    await enqueue('Ada');
    await working.says(/Hello Ada|restarts when/);
    expect(await processesIn(folder)).toHaveLength(2);
    expect(await database.client`select name from queue_workers`).toHaveLength(1);
    working.child.kill('SIGINT');
    expect(await working.end()).toMatchObject({ code: 0 });
    expect(await processesIn(folder)).toEqual([]);
  });

  test('--watch leaves no child when it is killed', async () => {
    const folder = await cli.project(app);
    const working = startCli(cli.bin, ['work', '--watch'], { cwd: folder, env: env() });
    await enqueue('Ada');
    await working.says('Hello Ada');
    working.child.kill('SIGKILL');
    await until(async () => (await processesIn(folder)).length === 0);
    expect(await database.client`select from queue_workers`).toHaveLength(0);
  });

  test('--queue refuses a queue that nothing names', async () => {
    expect(await run('work', '--queue', 'defualt', '--drain')).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(
        /^drizzle-queue: work: there is no queue 'defualt' \(did you mean default\?\)/,
      ),
    });
    // An enqueue may name any queue.
    await enqueue('Ada', '--queue', 'mail');
    expect(await run('work', '--queue', 'mail', '--drain')).toMatchObject({
      code: 0,
      stdout: 'Hello Ada\n1 completed, 0 failed, 0 discarded\n',
    });
  });

  test('--concurrency goes before what the config says of a queue', async () => {
    const folder = await cli.project({
      ...app,
      'queue.config.mjs': app['queue.config.mjs'].replace(
        'db,',
        'db, worker: { queues: { default: { concurrency: 50 }, mail: {} } },',
      ),
    });
    const working = startCli(cli.bin, ['work', '--concurrency', '5'], { cwd: folder, env: env() });
    await working.says(/started, .*: default \(5\), mail \(5\)/);
    working.child.kill('SIGTERM');
    expect(await working.end()).toMatchObject({ code: 0 });
  });

  test('needs handlers', async () => {
    const folder = await cli.project({
      ...app,
      'queue.config.mjs': app['queue.config.mjs'].replace(/handlers: .*/, ''),
    });
    expect(await runCli(cli.bin, ['work'], { cwd: folder, env: env() })).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('queue.config.ts has no handlers'),
    });
    expect(await run('work', '--drain', '--url', database.url)).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('takes no --url'),
    });
    const bare = await cli.project();
    const { code, stderr } = await runCli(cli.bin, ['work', '--url', database.url], { cwd: bare });
    expect({ code, stderr }).toEqual({
      code: 1,
      stderr: expect.stringContaining('work needs a queue.config.ts'),
    });
  });
});

/** The processes that have this folder for their own. */
async function processesIn(folder: string): Promise<string[]> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name));
  const found = await Promise.all(
    pids.map(async (pid) => {
      const own = await readlink(`/proc/${pid}/cwd`).catch(() => '');
      return own === folder ? pid : undefined;
    }),
  );
  return found.filter((pid) => pid !== undefined);
}

test('tail shows jobs as they end', async () => {
  await enqueue('before');
  await run('work', '--drain');
  const tailing = startCli(cli.bin, ['tail', '--every', '50ms', '--json'], { cwd, env: env() });
  const failing = startCli(cli.bin, ['tail', '--every', '50ms', '--state', 'discarded'], { cwd, env: env() });
  // What ends before they have looked for the first time is not theirs to show.
  await until(async () => {
    const looking = await database.client`
      select from pg_stat_activity
      where datname = ${database.name} and pid <> pg_backend_pid() and query like '%finished_at%'`;
    return looking.length >= 2;
  });
  await enqueue('Ada');
  await enqueue('nobody');
  await run('work', '--drain');
  await tailing.says('nobody');
  await failing.says('NonRetryableError: who?');
  tailing.child.kill('SIGINT');
  failing.child.kill('SIGINT');
  const [all, discarded] = await Promise.all([tailing.end(), failing.end()]);
  expect([all.code, discarded.code]).toEqual([0, 0]);
  const lines = all.stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  expect(lines.map(({ job }) => job.payload.name).sort()).toEqual(['Ada', 'nobody']);
  expect(discarded.stdout.trim().split('\n')).toHaveLength(1);
  // Its time says its zone.
  expect(discarded.stdout).toMatch(/^\d\d:\d\d:\d\d\.\d{3}Z /);
});

test('tail prints each end once, also where an idle transaction goes on', async () => {
  const greet = defineJob('greet', { payload: unvalidated<{ name: string }>() });
  const end = async (name: string) => {
    await queue.enqueue(database.db, greet, { name });
    await runNext(database.db, { queue, handlers: [handle(greet, () => undefined)] });
  };
  const [other] = await database.connect();
  if (other === undefined) throw new Error('there is no connection');
  const tailing = startCli(cli.bin, ['tail', '--every', '50ms', '--json'], { cwd, env: env() });
  /** Waits for so many further looks. */
  const looks = async (many: number) => {
    for (let look = 0, last: unknown; look <= many; look++) {
      await until(async () => {
        const [looking] = await database.client`
          select query_start::text as at from pg_stat_activity
          where datname = ${database.name} and pid <> pg_backend_pid() and query like '%finished_at >=%'`;
        const at = looking?.at;
        if (at === undefined || at === last) return false;
        last = at;
        return true;
      });
    }
  };
  await other.client.begin(async (tx) => {
    await tx`select 1`;
    await looks(1);
    for (const name of ['Ada', 'Bob']) {
      await end(name);
      await tailing.says(name);
    }
    await looks(2);
    await tx`select pg_current_xact_id()`;
    await looks(4);
  });
  await end('last');
  await tailing.says('last');
  tailing.child.kill('SIGINT');
  const { stdout } = await tailing.end();
  const names = stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line).job.payload.name);
  expect(names).toEqual(['Ada', 'Bob', 'last']);
});

test('tail follows jobs by their ends, however many newer ids have ended before', async () => {
  const greet = defineJob('greet', { payload: unvalidated<{ name: string }>() });
  await queue.enqueue(database.db, greet, { name: 'Ada' });
  await database.client`
    insert into queue_results (job_id, queue, kind, payload, state, attempt, max_attempts, priority, fence,
      metadata, created_at, run_at, finished_at, errors)
    select 1000000 + n, 'newer', 'newer', 'null', 'completed', 1, 1, 5, 1, '{}', now(), now(),
      now() - interval '1 hour', '[]'
    from generate_series(1, 110000) as n`;
  const tailing = startCli(cli.bin, ['tail', '--every', '50ms', '--json'], { cwd, env: env() });
  await until(async () => {
    const looking = await database.client`
      select from pg_stat_activity
      where datname = ${database.name} and pid <> pg_backend_pid() and query like '%finished_at%'`;
    return looking.length >= 1;
  });
  await runNext(database.db, { queue, handlers: [handle(greet, () => undefined)] });
  await tailing.says('Ada');
  tailing.child.kill('SIGINT');
  const { code, stdout } = await tailing.end();
  expect({ code, lines: stdout.trim().split('\n').length }).toEqual({ code: 0, lines: 1 });
});

test('schedules: list, pause, resume, run, remove', async () => {
  expect(await run('schedules')).toMatchObject({ code: 0, stdout: 'No schedules.\n' });
  const scheduled = createQueue({ schedules: schedulesIn(queueSchedules) });
  const job = defineJob('greet', { payload: unvalidated<{ name: string }>() });
  const hourly = defineSchedule('hourly', { job, payload: { name: 'moon' }, every: 3_600_000 });
  await scheduled.schedules.set(database.db, hourly);
  const { stdout } = await run('schedules');
  expect(stdout).toMatch(/^hourly +greet +every 1 h +in \d+(\.\d+)? (min|h|s) +–$/m);
  expect(await run('schedules', 'pause', 'hourly')).toMatchObject({ code: 0, stdout: 'hourly is paused\n' });
  expect((await run('schedules')).stdout).toMatch(/^hourly .* paused +–$/m);
  expect(await run('schedules', 'resume', 'hourly')).toMatchObject({
    code: 0,
    stdout: 'hourly is resumed\n',
  });
  expect(await run('schedules', 'run', 'hourly')).toMatchObject({ code: 0 });
  expect((await queue.list(database.db)).jobs).toMatchObject([{ kind: 'greet', payload: { name: 'moon' } }]);
  expect(await run('schedules', 'remove', 'hourly')).toMatchObject({
    code: 0,
    stdout: 'hourly was removed\n',
  });
  expect(await run('schedules', 'pause', 'hourly')).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('hourly'),
  });
});

describe('queue.config.ts', () => {
  /** As people write it: imports without an end, an enum. */
  const typescript = {
    'queue.config.ts': `
      import { defineConfig } from 'drizzle-queue/config';
      import { db } from './src/db';
      import { createQueue, defineJob } from 'drizzle-queue';
      enum Kinds { Greet = 'greet' }
      export default defineConfig({ db, queue: createQueue(), jobs: [defineJob(Kinds.Greet as string)] });`,
    'src/db.ts': `
      import { drizzle } from 'drizzle-orm/postgres-js';
      import postgres from 'postgres';
      export const db = drizzle(postgres(process.env.SHOP_URL!));`,
  };

  test.each(['module', 'commonjs'])('in TypeScript, in a project of the type %s', async (type) => {
    const folder = await cli.project({ ...typescript, 'package.json': JSON.stringify({ type }) });
    const { code, stdout, stderr } = await runCli(cli.bin, ['enqueue', 'greet'], { cwd: folder, env: env() });
    expect({ code, stderr, stdout }).toEqual({
      code: 0,
      stderr: '',
      stdout: expect.stringMatching(/^Enqueued/),
    });
  });

  test('must be made by defineConfig', async () => {
    const folder = await cli.project({ 'queue.config.mjs': 'export default {};' });
    expect(await runCli(cli.bin, ['status'], { cwd: folder })).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('queue.config.mjs must `export default defineConfig('),
    });
  });

  test.each([
    ['jobs: [undefined]', 'jobs[0] of queue.config.ts must be what defineJob() returns; got undefined'],
    [
      'handlers: () => [5]',
      'handlers[0] of queue.config.ts must be what handle() or handleBatch() returns; got 5',
    ],
    ['handlers: [5]', 'handlers[0] of queue.config.ts must be what handle() or handleBatch() returns; got 5'],
    ['dashboard: { show: 5 }', 'defineConfig: dashboard.show must be a function, got a value of type number'],
    ['dashboard: { shows: 5 }', "defineConfig: dashboard: unknown option 'shows'"],
  ])('says what is wrong with %s', async (option, message) => {
    const folder = await cli.project({
      'queue.config.mjs': `
        import { defineConfig } from 'drizzle-queue/config';
        import { createQueue } from 'drizzle-queue';
        import { db } from './src/db.mjs';
        export default defineConfig({ db, queue: createQueue(), ${option} });`,
      'src/db.mjs': app['src/db.mjs'],
    });
    const { code, stderr } = await runCli(cli.bin, ['enqueue', 'greet'], { cwd: folder, env: env() });
    expect(code).toBe(1);
    expect(stderr).toContain(message);
    expect(stderr).not.toContain('    at ');
  });

  test('is found from a folder below, and its database gives way to --url', async () => {
    const below = join(cwd, 'src');
    const found = await runCli(cli.bin, ['status'], { cwd: below, env: env() });
    expect(found).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('The queues of ../queue.config.mjs'),
    });
    const moved = await runCli(cli.bin, ['status', '--url', database.url], {
      cwd,
      env: { SHOP_URL: 'postgres://nobody@127.0.0.1:1/shop' },
    });
    expect(moved).toMatchObject({ code: 0, stdout: expect.stringContaining('The queues of --url') });
  });

  test.skipIf('globSync' in fs)('says that a pattern in drizzle.config is not followed', async () => {
    const folder = await cli.project({
      'drizzle.config.mjs': `
        export default { dialect: 'postgresql', schema: './src/*.mjs', dbCredentials: { url: process.env.SHOP_URL } };`,
    });
    const { code, stderr } = await runCli(cli.bin, ['list'], { cwd: folder, env: env() });
    expect(code).toBe(0);
    expect(stderr).toContain("The pattern './src/*.mjs' in the schema of drizzle.config is not followed");
  });

  test('may have other tables and own columns, by which one can filter', async () => {
    await database.client`create schema if not exists jobs`;
    const tables = `
      import { pgSchema, integer } from 'drizzle-orm/pg-core';
      import { createQueueTables } from 'drizzle-queue/schema';
      export const { queueJobs, queueResults, queueWorkers, queuePauses } =
        createQueueTables({ prefix: 'mail_', schema: pgSchema('jobs'), columns: { tenantId: integer('tenant_id') } });`;
    for (const name of ['jobs', 'results', 'workers', 'pauses']) {
      const [from, to] = [`queue_${name}`, `jobs.mail_${name}`];
      await database.client.unsafe(`create table ${to} (like public.${from} including all)`);
    }
    for (const name of ['jobs', 'results'])
      await database.client.unsafe(`alter table jobs.mail_${name} add column tenant_id integer`);
    await database.client.unsafe(`
      insert into jobs.mail_jobs (id, queue, kind, payload, max_attempts, tenant_id) overriding system value
      select each.id, 'mail', 'a', '{}', 20, each.tenant_id from (values (1, 7), (2, 8)) as each (id, tenant_id)`);
    const folder = await cli.project({
      'schema.mjs': tables,
      'drizzle.config.mjs': `
        export default { dialect: 'postgresql', schema: './schema.mjs', dbCredentials: { url: process.env.SHOP_URL } };`,
    });
    const list = (...args: string[]) =>
      runCli(cli.bin, ['list', '--json', ...args], { cwd: folder, env: env() });
    const { code, stdout, stderr } = await list('--where', 'tenantId=7');
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(JSON.parse(stdout).jobs).toMatchObject([{ id: 1, tenantId: 7 }]);
    expect(JSON.parse((await list()).stdout).jobs).toHaveLength(2);
    expect(await list('--where', 'tenant=7')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('one of tenantId'),
    });
    expect(await list('--where', 'tenantId=x')).toMatchObject({ code: 2 });
    const run = (...args: string[]) => runCli(cli.bin, args, { cwd: folder, env: env() });
    const ofSeven = ['--where', 'tenantId=7'];
    expect(await run('cancel', ...ofSeven, '--dry-run')).toMatchObject({
      code: 0,
      stdout: 'cancel would affect 1 job.\n',
    });
    expect(await run('cancel', '--all', ...ofSeven, '--yes')).toMatchObject({ code: 2 });
    expect(await run('cancel', ...ofSeven, '--yes')).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('1 cancelled'),
    });
    const states = async () =>
      JSON.parse((await list()).stdout).jobs.map(({ state }: { state: string }) => state);
    expect(await states()).toEqual(['due', 'cancelled']);
    const others = ['redrive', '--state', 'cancelled', '--where'];
    expect(await run(...others, 'tenantId=8', '--yes', '--json')).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('"redriven": 0'),
    });
    expect(await run(...others, 'tenantId=7', '--dry-run')).toMatchObject({
      stdout: 'redrive would affect 1 job.\n',
    });
    expect(await run(...others, 'tenantId=7', '--yes')).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('1 redriven'),
    });
    expect(await states()).toEqual(['due', 'due']);
  });
});
