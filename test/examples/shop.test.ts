import { execFile, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { cp, mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { promisify } from 'node:util';
import postgres from 'postgres';
import { afterEach, describe, expect, inject, test } from 'vitest';
// For the type of what `inject` returns.
import type {} from '../support/global-setup.ts';
import { until } from '../support/until.ts';

const cleanups: (() => unknown)[] = [];

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

// The demo uses drizzle-orm 0.45 whatever this run was started for.
describe.skipIf(process.env.DRIZZLE === 'v1')('npm run demo', () => {
  test('takes orders, works them off, and proves that everything adds up', { timeout: 60_000 }, async () => {
    const demo = startDemo();
    expect(await demo.ended(), demo.output()).toBe(0);

    const output = demo.output();
    expect(output).toMatch(/PostgreSQL \d+\.\d+ is up/);
    expect(output).toMatch(
      /\d+ orders, +\d+ declined · +\d+ receipts, +\d+ to retry · +\d+ parcels, +\d+ to retry/,
    );
    // Not a terminal: nothing that moves a cursor or gives colours.
    expect(output).not.toContain('\x1b');

    const stories = tableUnder(output, 'Orders joined to the results of their jobs');
    expect(stories).toContainEqual(
      expect.stringMatching(
        /^\d+ +\S+@greylist\.example +\d \w+ +completed +2 +msg-\S+ +completed +\d +box-\S+$/,
      ),
    );
    expect(stories).toContainEqual(
      expect.stringMatching(/^\d+ +nobody@void\.example +\d \w+ +discarded +1 +– +completed +\d +box-\S+$/),
    );

    expect(tableUnder(output, 'How the jobs ended').map((row) => row.replace(/ +/g, ' '))).toEqual([
      'kind state attempts jobs last error',
      'pack-order completed 1 210 –',
      'pack-order completed 2 60 The vase broke while it was packed',
      'send-receipt completed 1 200 –',
      'send-receipt completed 2 49 451 Try again later',
      'send-receipt completed 3 20 451 Try again later',
      'send-receipt discarded 1 1 550 No such mailbox',
    ]);

    expect(tableUnder(output, 'Which worker did them')).toHaveLength(1 + 2);

    const latencies = tableUnder(output, 'How long it took, in milliseconds').slice(1);
    expect(latencies).toHaveLength(4);
    for (const row of latencies) {
      const [p50 = 0, p95 = 0, p99 = 0, max = 0] = row.split(/ +/).slice(-4).map(Number);
      expect([p50, p95, p99, max]).toEqual([p50, p95, p99, max].toSorted((a, b) => a - b));
      expect(max).toBeGreaterThan(0);
    }

    const checks = tableUnder(output, 'Does it add up?').slice(1);
    expect(checks).toHaveLength(21);
    for (const check of checks) expect(check).toMatch(/^✓/);
    expect(output).toMatch(
      /Everything adds up: 270 orders were committed with their 540 jobs, 30 declined ones left nothing behind,\s150 failed attempts were .* exactly once\.\s*$/,
    );
    await until(async () => (await demo.processes()).length === 0);
  });

  test('ends with 1 when a single number does not add up, and drops its database', {
    timeout: 60_000,
  }, async () => {
    const { url } = inject('testServer');
    const demo = startDemo({ DATABASE_URL: url });
    await until(() => demo.output().includes('The shop is open'));
    const database = await demo.database(url);
    await connect(Object.assign(new URL(url), { pathname: database ?? '' }).href)`
      update products set stock = stock - 1 where sku = 'mug'`;

    expect(await demo.ended(), demo.output()).toBe(1);
    expect(demo.output()).toMatch(/✗ +Stock taken .* 120, 150, 120, 150 +121, 150, 120, 150\n/);
    expect(demo.output()).toContain('1 of 21 numbers do not add up.');
    expect(await connect(url)`select from pg_database where datname = ${String(database)}`).toHaveLength(0);
  });
});

// Processes are found in /proc.
describe.skipIf(process.env.DRIZZLE === 'v1' || process.platform !== 'linux')(
  'npm run demo leaves no process',
  () => {
    test('after Ctrl-C', { timeout: 60_000 }, async () => {
      const demo = startDemo();
      await until(() => demo.output().includes('The shop is open'));
      // So that the empty list below means something.
      expect((await demo.processes()).filter((command) => command.includes('worker.ts'))).toHaveLength(2);

      demo.kill('SIGINT');
      expect(await demo.ended(), demo.output()).toBe(130);
      // What was printed last may be read a moment after the exit.
      await until(() => demo.output().includes('Stopped by SIGINT'));
      await until(async () => (await demo.processes()).length === 0);
    });

    test('after it was killed', { timeout: 60_000 }, async () => {
      const demo = startDemo();
      await until(() => demo.output().includes('The shop is open'));
      demo.kill('SIGKILL');
      await demo.ended();
      await until(async () => (await demo.processes()).length === 0);
    });

    test('after a worker crashed, and ends with 1', { timeout: 60_000 }, async () => {
      const demo = startDemo();
      await until(() => demo.output().includes('The shop is open'));
      const pid = Number(/pid (\d+)/.exec(demo.output())?.[1]);
      process.kill(pid, 'SIGKILL');

      expect(await demo.ended(), demo.output()).toBe(1);
      expect(demo.output()).toContain(`Worker process ${pid} ended by itself: SIGKILL`);
      await until(async () => (await demo.processes()).length === 0);
    });
  },
);

test('the migrations of the shop are what drizzle-kit makes of its schema', { timeout: 60_000 }, async () => {
  const out = await mkdtemp(join(tmpdir(), 'drizzle-queue-shop-'));
  cleanups.push(() => rm(out, { recursive: true }));
  await cp('examples/shop/drizzle', out, { recursive: true });
  const { stdout } = await promisify(execFile)(process.execPath, [
    'node_modules/drizzle-kit/bin.cjs',
    'generate',
    '--dialect=postgresql',
    '--schema=examples/shop/schema.ts',
    // It takes no absolute path.
    `--out=${relative('', out)}`,
  ]);
  expect(stdout).toContain('No schema changes');
});

/** Starts `npm run demo` as a terminal would: in a process group of its own. */
function startDemo(env: NodeJS.ProcessEnv = {}) {
  // Found again in the environment of whatever the demo starts, and in the name that its connections give.
  const mark = `shop-${randomUUID()}`;
  const npm = spawn('npm', ['run', '--silent', 'demo'], {
    detached: true,
    env: { ...process.env, ...env, PGAPPNAME: mark },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  for (const stream of [npm.stdout, npm.stderr]) stream.on('data', (chunk) => (output += chunk));
  const ended = once(npm, 'close');
  const kill = (signal: NodeJS.Signals) => process.kill(-(npm.pid ?? 0), signal);
  cleanups.push(() => npm.exitCode ?? npm.signalCode ?? kill('SIGKILL'));
  return {
    kill,
    output: () => output,
    /** The exit code, as a shell would give it. */
    async ended(): Promise<number> {
      const [code, signal] = await ended;
      return signal === 'SIGINT' ? 130 : Number(code);
    },
    /** The name of the database that it uses on the server. */
    database: (serverUrl: string): Promise<string | undefined> =>
      until(async () => {
        const [row] = await connect(serverUrl)<{ datname: string }[]>`
          select datname from pg_stat_activity
          where application_name = ${mark} and datname like 'drizzle_queue_%'`;
        return row?.datname;
      }),
    /** The command lines of its processes that are still there. */
    async processes(): Promise<string[]> {
      const pids = (await readdir('/proc').catch(() => [])).filter((name) => /^\d+$/.test(name));
      const commands = await Promise.all(
        pids.map(async (pid) => {
          const read = (file: string) => readFile(`/proc/${pid}/${file}`, 'utf8').catch(() => '');
          return (await read('environ')).includes(mark) ? await read('cmdline') : '';
        }),
      );
      return commands.filter((command) => command !== '');
    },
  };
}

function connect(url: string): postgres.Sql {
  const sql = postgres(url, { max: 1 });
  cleanups.push(() => sql.end({ timeout: 1 }));
  return sql;
}

/** The rows of the table under a heading, its header first. */
function tableUnder(output: string, heading: string): string[] {
  const lines = output.split('\n');
  const start = lines.findIndex((line) => line.startsWith(heading));
  expect(start, `the heading '${heading}' in ${output}`).toBeGreaterThanOrEqual(0);
  const end = lines.indexOf('', start);
  return lines
    .slice(start + 1, end)
    .map((line) => line.trim())
    .filter((line) => !line.startsWith('─'));
}
