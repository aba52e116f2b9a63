import { beforeEach, describe, expect, test } from 'vitest';
import { countJobs } from '../../src/core/queries/operate/count-jobs.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { addJob, clearTables, type GivenJob, tables } from './support/jobs.ts';

const database = useTestDatabase();

beforeEach(() => clearTables(database.client));

const errorsOf = (...attempts: number[]) =>
  attempts.map((attempt) => ({ attempt, name: 'Error', message: 'no' }));
/** As many as are kept. */
const FULL = errorsOf(11, 12, 13, 14, 15, 16, 17, 18, 19, 20);

describe('jobs that have killed two or more workers', () => {
  test.each<[string, GivenJob, number]>([
    ['attempts without an error', { attempt: 2 }, 1],
    ['one attempt without an error', { attempt: 1 }, 0],
    ['the last attempt goes on', { attempt: 2, workerId: 1 }, 0],
    ['two and the last goes on', { attempt: 3, workerId: 1 }, 1],
    ['each attempt has an error', { attempt: 3, errors: errorsOf(1, 2, 3) }, 0],
    ['one attempt between two errors', { attempt: 3, errors: errorsOf(1, 3) }, 0],
    ['two attempts before an error', { attempt: 3, errors: errorsOf(3) }, 1],
    ['two attempts after an error', { attempt: 3, errors: errorsOf(1) }, 1],
    ['the errors are from before a redrive', { attempt: 2, errors: errorsOf(1, 2, 3) }, 1],
    [
      'the errors are from before a redrive, and the last attempt goes on',
      { attempt: 3, workerId: 1, errors: errorsOf(1, 2, 3) },
      1,
    ],
    ['an error since the redrive', { attempt: 2, errors: errorsOf(3, 1) }, 0],
    ['two attempts after an error since the redrive', { attempt: 3, errors: errorsOf(4, 5, 1) }, 1],
    ['older errors are forgotten', { attempt: 20, errors: FULL }, 0],
    ['two attempts after errors of which some are forgotten', { attempt: 22, errors: FULL }, 1],
    ['as many errors as are kept, from before a redrive', { attempt: 2, errors: FULL }, 1],
    [
      'cancelled after one attempt, and redriven',
      { attempt: 2, errors: [{ attempt: 0, name: 'Cancelled' }] },
      1,
    ],
  ])('%s', async (_, job, killers) => {
    await addJob(database.client, { maxAttempts: 30, ...job });
    expect(await countJobs(database.db, tables)).toMatchObject([{ killers }]);
  });
});
