import { randomBytes } from 'node:crypto';
import { get } from 'node:http';
import { createServer } from 'node:net';
import { createQueue, defineJob, fixedBackoff, handle, runNext } from 'drizzle-queue';
import { beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { addControlTables } from '../support/control-tables.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';
import { useCli } from './support/build-cli.ts';
import { hasTerminal, runCli, startCli, startInTerminal } from './support/run-cli.ts';

const database = useTestDatabase();
const cli = useCli();
const queue = createQueue();
const sendReceipt = defineJob('send-receipt', {
  payload: z.object({ orderId: z.number() }),
  queue: 'mail',
  backoff: fixedBackoff(60_000),
});
/** What moves a cursor or turns the direction of writing. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what must not be there
const OBEYED = /[\u001b\u202e]/;
/** On many machines it needs privileges. */
const isPort80Free = await new Promise<boolean>((resolve) => {
  const server = createServer()
    .on('error', () => resolve(false))
    .listen(80, '127.0.0.1', () => server.close(() => resolve(true)));
});
let cwd: string;
let done: number;
let evil: number;

/** Runs the command with the database in the environment. */
const run = (...args: string[]) => runCli(cli.bin, args, { cwd, env: { DATABASE_URL: database.url } });

async function answer(...args: string[]): Promise<Record<string, unknown>> {
  const { code, stdout, stderr } = await run(...args, '--json');
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  return JSON.parse(stdout);
}

beforeAll(async () => {
  cwd = await cli.project();
  const { db } = database;
  ({ id: done } = await queue.enqueue(db, sendReceipt, { orderId: 1 }));
  await runNext(db, { queue, handlers: [handle(sendReceipt, () => undefined)] });
  await queue.enqueueMany(
    db,
    sendReceipt,
    Array.from({ length: 3 }, (_, index) => ({ payload: { orderId: index + 2 } })),
  );
  await queue.enqueue(db, sendReceipt, { orderId: 9 }, { delayMs: 3_600_000 });
  const hostile = defineJob('-e\u001b[31m\u202e', { queue: '--json' });
  ({ id: evil } = await queue.enqueue(db, hostile, undefined, { uniqueKey: 'a\nb\tc' }));
});

describe('status', () => {
  test('shows the queues', async () => {
    const { code, stdout, stderr } = await run('status');
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toMatch(/^The queues of DATABASE_URL, counted at \d\d:\d\d:\d\d UTC$/m);
    expect(stdout).toMatch(/^mail +3 +0 +1 +0 /m);
    expect(stdout).toMatch(/^--json +1 /m);
    expect(stdout).not.toContain('\u001b');
  });

  test('as JSON', async () => {
    const status = await answer('status');
    expect(status).toMatchObject({ version: 1, estimated: false });
    expect(status.queues).toEqual(
      expect.arrayContaining([expect.objectContaining({ queue: 'mail', due: 3, scheduled: 1 })]),
    );
  });

  test('--watch draws again until Ctrl-C, and ends with 0', async () => {
    const watching = startCli(cli.bin, ['status', '--watch', '--every', '50ms', '--json'], {
      cwd,
      env: { DATABASE_URL: database.url },
    });
    await watching.says(/\n.*\n/);
    watching.child.kill('SIGINT');
    const { code, stdout, stderr } = await watching.end();
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    for (const line of stdout.trim().split('\n')) expect(JSON.parse(line)).toMatchObject({ version: 1 });
  });

  test.skipIf(!hasTerminal)('--watch in a terminal gives the cursor back', async () => {
    const watching = startInTerminal(cli.bin, ['status', '--watch', '--every', '50ms'], {
      cwd,
      env: { DATABASE_URL: database.url },
    });
    await until(() => watching.stdout().split('\u001b[H').length > 2);
    watching.write('\u0003');
    const { code, stdout } = await watching.end();
    expect(code).toBe(0);
    expect(stdout).toContain('\u001b[1mmail');
    expect(stdout.lastIndexOf('\u001b[?25h')).toBeGreaterThan(stdout.lastIndexOf('\u001b[?25l'));
  });

  test.skipIf(!hasTerminal)(
    '--watch fits into a small terminal, whose lines break again after it',
    async () => {
      const watching = startInTerminal(cli.bin, ['status', '--watch', '--every', '50ms'], {
        cwd,
        env: { DATABASE_URL: database.url },
        columns: 20,
        rows: 5,
      });
      await until(() => watching.stdout().split('\u001b[H').length > 2);
      watching.write('\u0003');
      const { code, stdout } = await watching.end();
      expect(code).toBe(0);
      const [begin = '', ...pictures] = stdout.split('\u001b[H');
      expect(begin).toContain('\u001b[?7l');
      for (const picture of pictures) expect(picture.split('\n').length - 1).toBeLessThan(5);
      expect(stdout.lastIndexOf('\u001b[?7h')).toBeGreaterThan(stdout.lastIndexOf('\u001b[H'));
    },
  );

  test('shows nothing of a queue or a kind that a terminal would obey', async () => {
    await database.client`
      insert into queue_jobs (queue, kind, payload, max_attempts, run_at)
      values (${'evil\u001b]0;mine\u0007\nerror: '}, ${'k\u001b[2J'}, 'null', 1, now() - interval '2 hours')`;
    for (const args of [['status'], ['doctor'], ['status', '--json'], ['list']]) {
      const { stdout, stderr } = await run(...args);
      // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what must not be there
      expect(stdout + stderr, args.join(' ')).not.toMatch(/[\u001b\u0007]/);
      expect(stdout, args.join(' ')).toContain('evil');
    }
    expect((await run('status')).stdout).toMatch(/^error: .*evil/m);
    await database.client`delete from queue_jobs where queue like 'evil%'`;
  });
});

describe('list', () => {
  test('shows jobs, the newest first, and what filters let through', async () => {
    const { stdout } = await run('list', '--kind', 'send-receipt', '--state', 'due');
    expect(stdout).toMatch(/^ *ID +STATE +QUEUE +KIND +ATTEMPT +WHEN +PAYLOAD$/m);
    const orders = [...stdout.matchAll(/"orderId":(\d)/g)].map(([, order]) => order);
    expect(orders).toEqual(['4', '3', '2']);
  });

  test('cuts no payload where it is piped', async () => {
    const note = 'x'.repeat(5_000);
    const { id } = await queue.enqueue(database.db, defineJob('long'), undefined, { delayMs: 3_600_000 });
    await database.client`update queue_jobs set payload = ${JSON.stringify({ note })}::text::jsonb where id = ${id}`;
    const { stdout } = await run('list', '--kind', 'long');
    await database.client`delete from queue_jobs where id = ${id}`;
    expect(stdout).toContain(`{"note":"${note}"}`);
  });

  test('as JSON, over pages', async () => {
    const first = await answer('list', '-n', '2', '-q', 'mail');
    expect(first).toMatchObject({ version: 1, truncated: false, nextCursor: expect.any(Number) });
    const second = await answer('list', '-q', 'mail', '--cursor', String(first.nextCursor));
    expect(second).toMatchObject({ nextCursor: null });
    expect([first.jobs, second.jobs].flat()).toHaveLength(5);
    const none = await answer('list', '--kind', 'nothing');
    expect(none).toEqual({ version: 1, jobs: [], nextCursor: null, truncated: false });
  });

  test('takes the words of the dashboard, and says which it does not know', async () => {
    const ordersOf = async (...args: string[]) =>
      ((await answer('list', ...args)).jobs as { payload: { orderId: number } }[]).map(
        ({ payload }) => payload.orderId,
      );
    expect(await ordersOf('--filter', 'kind:send-receipt state:due payload.orderId:3')).toEqual([3]);
    expect(await ordersOf('-f', 'queue:mail after:1h state:completed')).toEqual([1]);
    expect(await ordersOf('-f', `#${done}`, '--queue', 'mail')).toEqual([1]);
    expect(await run('list', '-f', 'knd:mail')).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/--filter: Unknown filter “knd:”; valid filters: state: kind: /),
    });
    expect(await run('list', '-f', 'queue:mail', '--queue', 'mail')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('both set queue'),
    });
  });

  test('searches payloads and times', async () => {
    const { jobs } = await answer('list', '--payload', '{"orderId":3}', '--created-after', '1h');
    expect(jobs).toMatchObject([{ payload: { orderId: 3 } }]);
    expect(await answer('list', '--finished-after', '2026-01-01', '--state', 'completed')).toMatchObject({
      jobs: [{ id: done }],
    });
  });

  test('prints names that begin with a dash, and nothing that moves a cursor', async () => {
    const { stdout } = await run('list', '--queue=--json');
    expect(stdout).toContain('-e\ufffd[31m\ufffd');
    expect(stdout).not.toMatch(OBEYED);
  });

  test('refuses what it cannot understand with 2, in one line', async () => {
    const refused: readonly (readonly [args: string[], why: RegExp])[] = [
      [['list', '--group', 'a'], /--group needs --queue/],
      [['list', '--where', 'tenant=7'], /no columns of its own/],
      [['show', '--', '-1'], /'-1' is not a job id/],
      [['show', '9007199254740992'], /'9007199254740992' is not a job id/],
      [['flows', 'show', 'x'], /'x' is not a flow id/],
      // It would print nothing, and never end.
      [['tail', '-f', 'state:due'], /must be one of completed, discarded, cancelled here, not due/],
    ];
    for (const [args, why] of refused) {
      const { code, stdout, stderr } = await run(...args);
      expect({ args, code, stdout }).toEqual({ args, code: 2, stdout: '' });
      expect(stderr).toMatch(why);
      expect(stderr.trim().split('\n')).toHaveLength(1);
    }
  });

  test('ends quietly when its reader leaves', async () => {
    const { db } = database;
    const big = defineJob('big');
    await queue.enqueueMany(
      db,
      big,
      Array.from({ length: 200 }, () => ({ metadata: { text: 'x'.repeat(10_000) } })),
    );
    const listing = startCli(cli.bin, ['list', '--json', '--limit', '1000'], {
      cwd,
      env: { DATABASE_URL: database.url },
    });
    listing.child.stdout?.once('data', () => listing.child.stdout?.destroy());
    const { code, stderr } = await listing.end();
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    await database.client`delete from queue_jobs where kind = 'big'`;
  });
});

describe('show', () => {
  test('shows a job', async () => {
    const { code, stdout } = await run('show', String(done));
    expect(code).toBe(0);
    expect(stdout).toMatch(new RegExp(`^Job ${done} send-receipt completed$`, 'm'));
    expect(stdout).toMatch(/^ {2}ended +20\d\d-/m);
    expect(await answer('show', `#${done}`)).toMatchObject({
      version: 1,
      job: { id: done, state: 'completed', payload: { orderId: 1 } },
    });
  });

  test('says that a payload is not kept; as JSON it is absent', async () => {
    const brief = defineJob('brief', { payload: z.number(), queue: 'brief', keepResult: 'outcome' });
    const { id } = await queue.enqueue(database.db, brief, 7);
    await runNext(database.db, { queue, handlers: [handle(brief, ({ payload }) => payload)] });
    const { stdout } = await run('show', String(id));
    expect(stdout).toMatch(/^payload\n {2}not kept\noutput\n {2}7$/m);
    expect((await run('list', '--kind', 'brief')).stdout).toContain('not kept');
    const { job } = await answer('show', String(id));
    expect(job).toMatchObject({ id, state: 'completed', output: 7 });
    expect(job).not.toHaveProperty('payload');
  });

  test('shows nothing that a terminal would obey', async () => {
    const { stdout } = await run('show', String(evil));
    expect(stdout).toContain('--json');
    expect(stdout).not.toMatch(OBEYED);
  });

  test('says that there is no such job', async () => {
    const { code, stderr } = await run('show', '9007199254740991');
    expect({ code, stderr }).toEqual({ code: 1, stderr: expect.stringContaining('There is no job') });
  });
});

describe('doctor', () => {
  test('finds nothing that fails', async () => {
    const { code, stdout } = await run('doctor');
    expect(stdout).toMatch(/^0 errors, /);
    expect(code).toBe(0);
    expect(await answer('doctor')).toMatchObject({ version: 1, ok: true, findings: expect.any(Array) });
  });

  test('exits with 1 for what is wrong, and says what to do', async () => {
    await database.client`alter table queue_jobs rename to queue_jobs_away`;
    try {
      const { code, stdout } = await run('doctor');
      expect(code).toBe(1);
      // The verdict leads, and then what is wrong.
      expect(stdout).toMatch(/^[1-9]\d* errors?, .*\nerror .*\n/);
      expect(stdout).toContain('(tables-missing)');
      expect(stdout).toContain('drizzle-kit generate');
      const ended = await run('doctor', '--json');
      expect({ code: ended.code, ...JSON.parse(ended.stdout) }).toMatchObject({ code: 1, ok: false });
    } finally {
      await database.client`alter table queue_jobs_away rename to queue_jobs`;
    }
  });

  test('says once what the check and the vitals have found, and has both as JSON', async () => {
    await database.client`
      insert into queue_workers (name, queues, seen_at) values ('w', '[]', now() - interval '7 minutes')`;
    try {
      const { stdout } = await run('doctor');
      expect(stdout).toContain('(workers-silent)');
      expect(stdout).not.toContain('(worker-silent)');
      const { findings, vitals } = JSON.parse((await run('doctor', '--json')).stdout);
      expect(findings).toContainEqual(expect.objectContaining({ code: 'worker-silent' }));
      expect(vitals).toContainEqual(expect.objectContaining({ code: 'workers-silent', severity: 'warning' }));
    } finally {
      await database.client`delete from queue_workers`;
    }
  });

  test('does not judge by limits that it does not know', async () => {
    await addControlTables(database);
    await database.client`
      insert into queue_workers (name, queues, kinds) values ('w', '["limited"]', '["k"]')`;
    await database.client`
      insert into queue_jobs (queue, kind, group_key, payload, max_attempts, run_at)
      values ('limited', 'k', 'a', 'null', 1, now() - interval '3 minutes')`;
    try {
      const { findings, vitals } = JSON.parse((await run('doctor', '--json')).stdout);
      const codes = findings.map(({ code }: { code: string }) => code);
      expect(codes).not.toContain('groups-undeclared');
      expect(codes).not.toContain('claims-refused');
      expect(vitals).toContainEqual(expect.objectContaining({ code: 'claims-refused', severity: 'ok' }));
      const { vitals: ofStatus } = await answer('status');
      expect(ofStatus).not.toContainEqual(
        expect.objectContaining({ code: 'claims-refused', severity: 'warning' }),
      );
    } finally {
      await database.client`delete from queue_workers`;
      await database.client`delete from queue_jobs where queue = 'limited'`;
    }
  });

  test('tells a role that may not read the workers what it could check', async () => {
    const role = `poor_${randomBytes(4).toString('hex')}`;
    const name = new URL(database.url).pathname.slice(1);
    await database.client.unsafe(`create role ${role} login password 'poor'`);
    try {
      await database.client.unsafe(`grant connect on database "${name}" to ${role}`);
      await database.client.unsafe(`grant select on queue_jobs, queue_results, queue_pauses to ${role}`);
      const url = new URL(database.url);
      url.username = role;
      url.password = 'poor';
      const { code, stdout, stderr } = await runCli(cli.bin, ['doctor', '--url', url.href], { cwd });
      expect({ code, stderr }).toEqual({ code: 1, stderr: '' });
      expect(stdout).toMatch(
        /^1 error, .*\nerror This role may not read what the vitals need.*queue_workers/,
      );
      expect(stdout).toContain('(not-tuned)');
    } finally {
      await database.client.unsafe(`drop owned by ${role}`);
      await database.client.unsafe(`drop role ${role}`);
    }
  });
});

describe('dashboard', () => {
  /** Asks as a browser does, with headers that fetch does not send. */
  async function ask(url: string, headers: Record<string, string> = {}) {
    return await new Promise<{
      status: number | undefined;
      body: string;
      headers: NodeJS.Dict<string | string[]>;
    }>((resolve, reject) => {
      get(url, { headers }, (response) => {
        let body = '';
        response.on('data', (chunk) => {
          body += chunk;
        });
        response.on('end', () => resolve({ status: response.statusCode, body, headers: response.headers }));
      }).on('error', reject);
    });
  }

  test('starts in a moment, and answers those with the token, under its own names', async () => {
    const began = performance.now();
    const serving = startCli(cli.bin, ['dashboard', '--port', '0', '--json'], {
      cwd,
      env: { DATABASE_URL: database.url },
    });
    await serving.says('"url"');
    const tookMs = performance.now() - began;
    console.info(`the dashboard started within ${Math.round(tookMs)} ms`);
    expect(tookMs).toBeLessThan(20_000);
    const { url }: { url: string } = JSON.parse(serving.stdout());
    const { origin, host, pathname } = new URL(url);
    expect(origin).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/);
    expect(pathname).toMatch(/^\/[0-9a-f]{32}\/$/);
    const base = `${origin}${pathname.slice(0, -1)}`;

    expect(await ask(`${origin}/`)).toMatchObject({ status: 403, body: expect.stringContaining('token') });
    expect(await ask(`${base}/?token=${'a'.repeat(43)}`)).toMatchObject({ status: 403 });
    expect(await ask(url, { host: 'evil.example' })).toMatchObject({ status: 403 });

    const welcome = await ask(url);
    expect(welcome).toMatchObject({ status: 303, headers: { location: pathname } });
    const [cookie = ''] = String(welcome.headers['set-cookie']).split(';');
    // Any other local server receives the cookies of `/`, and would have the token.
    expect(String(welcome.headers['set-cookie'])).toMatch(
      new RegExp(`; Path=${pathname.slice(0, -1)}; HttpOnly; SameSite=Strict$`),
    );
    const page = await ask(`${base}/jobs`, { cookie });
    expect(page.status).toBe(200);
    expect(page.body).toContain('send-receipt');
    expect(page.body).not.toContain(cookie.split('=')[1]);
    expect(await ask(`${base}/jobs`, { cookie, host: 'evil.example' })).toMatchObject({ status: 403 });
    expect(await ask(`${base}/jobs`)).toMatchObject({ status: 403 });
    expect(await ask(`${origin}/jobs`, { cookie })).toMatchObject({ status: 403 });
    expect(await ask(`${base}/jobs`, { cookie, host: host.replace('127.0.0.1', 'localhost') })).toMatchObject(
      {
        status: 200,
      },
    );

    serving.child.kill('SIGINT');
    expect(await serving.end()).toMatchObject({ code: 0, stderr: '' });
  });

  test.skipIf(!isPort80Free)('answers on the port that browsers leave out of the address', async () => {
    const serving = startCli(cli.bin, ['dashboard', '--port', '80', '--json'], {
      cwd,
      env: { DATABASE_URL: database.url },
    });
    await serving.says('"url"');
    const { url }: { url: string } = JSON.parse(serving.stdout());
    expect(url).toMatch(/^http:\/\/127\.0\.0\.1\/[0-9a-f]{32}\/\?token=/);
    expect(await ask(url)).toMatchObject({ status: 303 });
    expect(await ask(url, { host: 'localhost' })).toMatchObject({ status: 303 });
    serving.child.kill('SIGTERM');
    expect(await serving.end()).toMatchObject({ code: 0 });
  });

  test('takes no port that is in use', async () => {
    const first = startCli(cli.bin, ['dashboard', '--port', '0', '--json'], {
      cwd,
      env: { DATABASE_URL: database.url },
    });
    await first.says('"url"');
    const { port } = new URL(JSON.parse(first.stdout()).url);
    const { code, stderr } = await run('dashboard', '--port', port);
    expect({ code, stderr }).toEqual({ code: 1, stderr: expect.stringContaining(`Port ${port} is in use`) });
    first.child.kill('SIGTERM');
    expect(await first.end()).toMatchObject({ code: 0 });
  });
});
