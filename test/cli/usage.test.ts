import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { main } from '../../src/entries/cli/main.ts';

/** Runs a command that needs no database in this process, and answers what it has said. */
async function said(...args: string[]) {
  let [stdout, stderr] = ['', ''];
  vi.spyOn(process.stdout, 'write').mockImplementation((text) => {
    stdout += text;
    return true;
  });
  vi.spyOn(process.stderr, 'write').mockImplementation((text) => {
    stderr += text;
    return true;
  });
  const code = await main(args, '1.2.3');
  vi.restoreAllMocks();
  return { code, stdout, stderr };
}

afterEach(() => vi.restoreAllMocks());

test('--help names every command, and each has a help of its own', async () => {
  const { code, stdout } = await said('--help');
  expect(code).toBe(0);
  const [, list = ''] = stdout.split('\nCommands:\n');
  const names = [...list.matchAll(/^ {2}([a-z][\w-]*)/gm)].map(([, name = '']) => name);
  expect(names.length).toBeGreaterThan(5);
  for (const name of names.filter((each) => each !== 'help')) {
    const help = await said(name, '--help');
    expect(help).toMatchObject({ code: 0, stderr: '' });
    expect(help.stdout).toContain(`drizzle-queue ${name}`);
  }
});

test('--version prints it', async () => {
  expect(await said('--version')).toEqual({ code: 0, stdout: '1.2.3\n', stderr: '' });
});

test('without a command it prints the help, and fails', async () => {
  expect(await said()).toMatchObject({ code: 2, stderr: expect.stringContaining('Commands:') });
});

describe('refused with 2, in one line', () => {
  test.each([
    [['staus'], "unknown command 'staus' (Did you mean status?)"],
    [['list', '--knd', 'a'], "unknown option '--knd' (Did you mean --kind?)"],
    [['list', '--state', 'dead'], 'It must be one of waiting, scheduled, due'],
    [['list', '--limit', '0'], 'whole number of at least 1'],
    [['list', '--limit', '9007199254740993'], 'whole number of at least 1'],
    [['list', '--limit', '1e3'], 'whole number of at least 1'],
    [['list', '--kind', 'a', '--kind', 'b'], 'given twice'],
    [['list', '--kind', ''], 'It is empty'],
    [['list', '--kind'], 'argument missing'],
    [['list', '--payload', '{'], 'It must be JSON'],
    [['list', '--created-after', 'yesterday'], 'It must be a time'],
    [['list', '--created-after', '2026-13-45'], 'It must be a time'],
    [['list', '--created-after', '2026-11-20T10:00'], 'It must be a time'],
    // Postgres does not read these as JavaScript writes them.
    [['list', '--created-after', '0000-01-01'], 'It must be a time'],
    [['list', '--created-after', '1000000d'], 'It must be a time'],
    [['list', '--created-after', '999999999999d'], 'It must be a time'],
    [['list', 'twice'], 'too many arguments'],
    [['status', '--every', 'soon'], 'It must be a duration'],
    // A timer without a pause, or beyond what a timer can wait, would ask the database all the time.
    [['status', '--watch', '--every', '0ms'], 'a duration from 10ms to 1d'],
    [['tail', '--every', '60d'], 'a duration from 10ms to 1d'],
    [['list', '--where', ''], 'It is empty'],
    [['work', '--queue', ''], 'It is empty'],
    [
      ['work', '--drain', '0s'],
      "option '--drain [duration]' argument '0s' is invalid. It must be a duration",
    ],
    [['work', '--drain', '25d'], 'a duration from 1ms to 24d'],
    [['sql', 'partitions', '--list', ''], 'It is empty'],
    [['show'], "missing required argument 'id'"],
    [['dashboard', '--port', '70000'], 'whole number from 0 to 65535'],
    [['status', '--url', 'mysql://localhost/shop'], 'this one starts with mysql://'],
    [['status', '--url', 'no address'], 'must look like postgres://'],
    [['status', '--config', 'nowhere.ts'], 'nowhere.ts of --config does not exist'],
    [['sql', 'partitions'], 'give either --list'],
    [['sql', 'tuning', '--prefix', 'a b'], 'plain lower-case name'],
    [['status', '--env-file', '/nowhere/.env'], 'cannot be read (ENOENT)'],
  ])('%j', async (args, why) => {
    const { code, stdout, stderr } = await said(...args);
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toContain(why);
    expect(stderr.trim().split('\n')).toHaveLength(1);
  });
});

describe('sql', () => {
  test('begins on a line of its own, after a comment that ends without one', async () => {
    const { code, stdout } = await said('sql', 'tuning');
    expect(code).toBe(0);
    expect(stdout).toMatch(/^\n\S/);
  });

  test('--append adds it to a migration, and to no file that is not there', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'drizzle-queue-sql-'));
    onTestFinished(() => rm(folder, { recursive: true }));
    const file = join(folder, '0001_tuning.sql');
    expect(await said('sql', 'tuning', '--append', file)).toMatchObject({
      code: 1,
      stdout: '',
      stderr: expect.stringContaining(
        `${file} does not exist; \`npx drizzle-kit generate --custom\` creates it`,
      ),
    });
    await writeFile(file, '-- Custom SQL migration file, put your code below! --');
    expect(await said('sql', 'tuning', '--append', file)).toMatchObject({
      code: 0,
      stdout: `Added to ${file}\n`,
    });
    const [comment, ...lines] = (await readFile(file, 'utf8')).split('\n');
    expect(comment).toBe('-- Custom SQL migration file, put your code below! --');
    expect(lines.join('\n')).toBe((await said('sql', 'tuning')).stdout.slice(1));
  });
});
