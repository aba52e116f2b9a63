import { describe, expect, inject, test } from 'vitest';
import { checkTakenOnce } from '../../examples/seeds/stage/taken-once.ts';
import { createDatabase } from '../support/databases.ts';
import { lines, names, outputs, programs, run } from './seed-programs.ts';

test.each(names)('the design %s works, with this version of drizzle-orm', async (name) => {
  const database = await createDatabase(inject('testServer').url);
  expect(await lines(programs[name], database)).toEqual(outputs[name]);
});

// A program of its own uses drizzle-orm 0.45 whatever this run was started for.
describe.skipIf(process.env.DRIZZLE === 'v1')('a program, as it is run by hand', () => {
  // The others in the slow tests.
  test('exits with 0', async () => {
    const { code, stdout, stderr } = await run('../../examples/seeds/pop.ts');
    expect(stdout.trimEnd().split('\n'), stderr).toEqual(outputs.pop);
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
