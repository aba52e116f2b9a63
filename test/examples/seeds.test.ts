import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { main as advisoryLocks } from '../../examples/seeds/advisory-locks.ts';
import { main as hold } from '../../examples/seeds/hold.ts';
import { main as jobsAndResults } from '../../examples/seeds/jobs-and-results.ts';
import { main as pop } from '../../examples/seeds/pop.ts';
import { type Program, perform } from '../../examples/seeds/stage/run-program.ts';
import { checkTakenOnce } from '../../examples/seeds/stage/taken-once.ts';
import { createDatabase, type Database } from '../support/databases.ts';
import { type PostgresServer, startPostgres } from '../support/embedded-postgres.ts';
// For the type of what `inject` returns.
import type {} from '../support/global-setup.ts';
import { hasPostgres } from '../support/postgres-binaries.ts';

/** What each program says, where every number that differs from run to run is left open. */
const outputs = {
  pop: [
    'A consumer pops item 1 in a transaction, and dies.',
    '400 of 400 items are in the queue.',
    expect.stringMatching(/^Consumer 1 took [1-9]\d* items\.$/),
    expect.stringMatching(/^Consumer 2 took [1-9]\d* items\.$/),
    expect.stringMatching(/^Consumer 3 took [1-9]\d* items\.$/),
    expect.stringMatching(/^Consumer 4 took [1-9]\d* items\.$/),
    'Every item was taken exactly once.',
  ],
  hold: [
    'query       consumers  at work at once  ms for 60 rows',
    expect.stringMatching(/^FOR UPDATE {10}1 {16}1 +\d+$/),
    // This is what the article is about.
    expect.stringMatching(/^FOR UPDATE {10}4 {16}1 +\d+$/),
    expect.stringMatching(/^hold {16}1 {16}1 +\d+$/),
    expect.stringMatching(/^hold {16}4 {16}[234] +\d+$/),
    'A consumer holds row 1, and dies.',
    'The others finish all 60 rows, row 1 too, once its hold has ended.',
    'Back from the dead, the first one finishes 0 rows.',
    'Every row was finished exactly once.',
  ],
  'jobs-and-results': [
    '133 runs for 120 jobs.',
    'language  texts  words  longest',
    'de           40    161        7',
    'en           40    159        7',
    'pt           39    153        7',
    'Job 60 is left, with 0 retries.',
    'Every job has either its one result or no retry left.',
  ],
  'advisory-locks': [
    'Advisory locks after min(id) of what can be locked: 1 before the commit, 1 after it.',
    'The same, when the planner reads the whole table: 200 before the commit, 200 after it.',
    'The window of candidates, in the same case: 1 before the commit, 0 after it.',
    expect.stringMatching(/^4 consumers took 200 items, and had to ask again \d+ times\.$/),
    '0 advisory locks are left.',
    'Every item was taken exactly once.',
  ],
};

type Name = keyof typeof outputs;

const programs: Readonly<Record<Name, Program>> = {
  pop,
  hold,
  'jobs-and-results': jobsAndResults,
  'advisory-locks': advisoryLocks,
};

const names: readonly Name[] = ['pop', 'hold', 'jobs-and-results', 'advisory-locks'];

async function lines(program: Program, database: Database): Promise<string[]> {
  const said: string[] = [];
  try {
    await perform(program, database.url, (line) => said.push(line));
    return said;
  } finally {
    await database.drop();
  }
}

describe('each design works, with this version of drizzle-orm', () => {
  test.each(names)('%s', async (name) => {
    const database = await createDatabase(inject('testServer').url);
    expect(await lines(programs[name], database)).toEqual(outputs[name]);
  });

  describe.skipIf(!hasPostgres('14'))('on PostgreSQL 14', () => {
    let server: PostgresServer | undefined;
    beforeAll(async () => {
      server = await startPostgres({ version: '14' });
    });
    afterAll(() => server?.stop());

    test.each(names)('%s', async (name) => {
      const database = await createDatabase(server?.url ?? '');
      expect(await lines(programs[name], database)).toEqual(outputs[name]);
    });
  });
});

// A program of its own uses drizzle-orm 0.45 whatever this run was started for.
describe.skipIf(process.env.DRIZZLE === 'v1')('each program, as it is run by hand', () => {
  function run(path: string): Promise<{ code: unknown; stdout: string; stderr: string }> {
    const program = fileURLToPath(new URL(path, import.meta.url));
    const env = { ...process.env, DATABASE_URL: inject('testServer').url };
    return new Promise((resolve) => {
      execFile(process.execPath, ['--import', 'tsx', program], { env }, (error, stdout, stderr) =>
        resolve({ code: error === null ? 0 : error.code, stdout, stderr }),
      );
    });
  }

  test.each(names)('%s exits with 0', async (name) => {
    const { code, stdout, stderr } = await run(`../../examples/seeds/${name}.ts`);
    expect(stdout.trimEnd().split('\n'), stderr).toEqual(outputs[name]);
    expect(code).toBe(0);
  });

  test('exits with 1 when something does not add up', async () => {
    const { code, stdout, stderr } = await run('fixtures/failing-program.ts');
    expect(stdout).toBe('It begins.\n');
    expect(stderr).toContain(
      'Not every item was taken exactly once. Missing: 2; more than once: 3; unknown: none',
    );
    expect(code).toBe(1);
  });
});

describe('checkTakenOnce', () => {
  test('is content when each was taken once, in any order', () => {
    checkTakenOnce([3, 1, 2], 3);
  });

  test.each([
    { taken: [1, 2], message: /Missing: 3; more than once: none/ },
    { taken: [1, 2, 3, 3, 3, 1], message: /Missing: none; more than once: 1, 3/ },
    { taken: [0, 1, 2, 3, 4, Number.NaN], message: /unknown: 0, 4, NaN/ },
    { taken: [], message: /Missing: 1, 2, 3/ },
  ])('names what is wrong with $taken', ({ taken, message }) => {
    expect(() => checkTakenOnce(taken, 3)).toThrow(message);
  });
});
