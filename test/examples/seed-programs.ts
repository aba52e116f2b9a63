import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { expect, inject } from 'vitest';
import { main as advisoryLocks } from '../../examples/seeds/advisory-locks.ts';
import { main as hold } from '../../examples/seeds/hold.ts';
import { main as jobsAndResults } from '../../examples/seeds/jobs-and-results.ts';
import { main as pop } from '../../examples/seeds/pop.ts';
import { type Program, perform } from '../../examples/seeds/stage/run-program.ts';
import type { Database } from '../support/databases.ts';
// For the type of what `inject` returns.
import type {} from '../support/global-setup.ts';

/** What each program says, where every number that differs from run to run is left open. */
export const outputs = {
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

export const programs: Readonly<Record<Name, Program>> = {
  pop,
  hold,
  'jobs-and-results': jobsAndResults,
  'advisory-locks': advisoryLocks,
};

export const names: readonly Name[] = ['pop', 'hold', 'jobs-and-results', 'advisory-locks'];

/** What a program says on this database, which is removed after it. */
export async function lines(program: Program, database: Database): Promise<string[]> {
  const said: string[] = [];
  try {
    await perform(program, database.url, (line) => said.push(line));
    return said;
  } finally {
    await database.drop();
  }
}

/** Runs a program in a process of its own, as one does by hand. */
export function run(path: string): Promise<{ code: unknown; stdout: string; stderr: string }> {
  const program = fileURLToPath(new URL(path, import.meta.url));
  const env = { ...process.env, DATABASE_URL: inject('testServer').url };
  return new Promise((resolve) => {
    execFile(process.execPath, ['--import', 'tsx', program], { env }, (error, stdout, stderr) =>
      resolve({ code: error === null ? 0 : error.code, stdout, stderr }),
    );
  });
}
