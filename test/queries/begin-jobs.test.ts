import { beforeEach, describe, expect, test } from 'vitest';
import { beginFreeJobs, beginJobs } from '../../src/core/queries/begin/begin-jobs.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { addJob, addJobs, claim, clearTables, idsOf, jobRow, tables } from './support/jobs.ts';
import { begin, commit, twoBackends, untilBlocked } from './support/locks.ts';
import { releaseUnknown } from './support/release-unknown.ts';

const database = useTestDatabase();
const held = { queue: 'q', workerId: 1 };

beforeEach(() => clearTables(database.client));

const error = (attempt: number) => ({ attempt, name: 'Error', message: 'no', at: '' });

describe('a claim of which some do not begin', () => {
  const given = [
    { maxAttempts: 1 },
    { maxAttempts: 1 },
    { maxAttempts: 3 },
    { maxAttempts: 3, attempt: 1, errors: [error(1)] },
    { maxAttempts: 3, attempt: 1 },
    { maxAttempts: 3, attempt: 2, errors: [error(2)] },
    // It ends without running.
    { maxAttempts: 3, attempt: 3, errors: [error(2)] },
    // Put back after it was discarded.
    { maxAttempts: 3, attempt: 0, errors: [error(3)] },
    // And died then.
    { maxAttempts: 20, attempt: 1, errors: [error(21)] },
  ];

  test.each([
    ['none at once', 0 as const, [false, false, true, true, false, false, true, true, false]],
    ['the first at once', 1 as const, [true, false, true, true, false, false, true, true, false]],
    ['all at once', undefined, new Array<boolean>(9).fill(true)],
  ])('%s: spares the last attempt, and one after a silent end', async (_, beginning, expected) => {
    await addJobs(database.client, given);
    const jobs = await claim(database.db, { limit: 20, beginning });
    expect(jobs.map(({ begun }) => begun)).toEqual(expected);
    expect(jobs.map(({ attempt }) => attempt)).toEqual(given.map(({ attempt = 0 }) => attempt + 1));
    for (const { id, begun } of jobs) {
      expect((await jobRow(database.client, id))?.claimed_at === null).toBe(!begun);
    }
  });

  test.each([
    ['a job that died once begins with the others', { maxAttempts: 3, attempt: 1 }, true],
    ['a job of another kind stands apart', { maxAttempts: 1, kind: 'new' }, false],
    ['a last attempt after a death stands apart', { maxAttempts: 2, attempt: 1 }, false],
    ['a job that died twice stands apart', { maxAttempts: 20, attempt: 2 }, false],
    ['one that died twice after a redrive, too', { maxAttempts: 20, attempt: 2, errors: [error(21)] }, false],
    ['one that ends without running costs nobody anything', { maxAttempts: 1, attempt: 1 }, true],
  ])('of many: %s', async (_, given, isCalm) => {
    const harmless = { maxAttempts: 1 };
    await addJobs(database.client, [harmless, given, harmless, { maxAttempts: 20 }, harmless, harmless]);
    const jobs = await claim(database.db, {
      limit: 6,
      kinds: ['k', 'new'],
      beginning: { atMost: 5, provenKinds: ['k'] },
    });
    expect(jobs.map(({ begun }) => begun)).toEqual([true, isCalm, isCalm, true, isCalm, false]);
  });

  test('is taken over without spending their attempt, by a worker as by runNext', async () => {
    const ids = await addJobs(database.client, [{ maxAttempts: 1 }, { maxAttempts: 1 }]);
    for (const [times, workerId] of [2, 3, null].entries()) {
      const jobs = await claim(database.db, { limit: 2, workerId, beginning: 0, fromGoneWorkers: true });
      expect(idsOf(jobs)).toEqual(ids);
      expect(jobs.map(({ attempt, fence }) => ({ attempt, fence }))).toEqual(
        new Array(2).fill({ attempt: 1, fence: times + 1 }),
      );
    }
  });

  test('once begun is taken over with one attempt more', async () => {
    await addJob(database.client, { maxAttempts: 1 });
    const jobs = await claim(database.db, { beginning: 0 });
    expect(await beginJobs(database.db, tables, held, jobs)).toEqual(new Set(idsOf(jobs)));
    const [taken] = await claim(database.db, { workerId: 2, beginning: 0, fromGoneWorkers: true });
    expect(taken).toMatchObject({ attempt: 2, begun: true });
  });

  test('is given back as it was, whether its worker knows of it or not', async () => {
    const ids = await addJobs(database.client, [{ maxAttempts: 1 }, { maxAttempts: 1 }]);
    await claim(database.db, { limit: 2, beginning: 1 });
    expect(await releaseUnknown(database.db, { ...held, except: [], ids: { after: 0 } })).toBe(2);
    for (const id of ids) {
      expect(await jobRow(database.client, id)).toMatchObject({
        attempt: 0,
        worker_id: null,
        claimed_at: null,
      });
    }
  });
});

describe('beginJobs', () => {
  test('begins what is held under this fence, as often as it is said, and answers which', async () => {
    const [mine, given, taken] = await addJobs(database.client, [
      { maxAttempts: 1, workerId: 1, fence: 1 },
      { maxAttempts: 1, fence: 1 },
      { maxAttempts: 1, workerId: 2, fence: 2 },
    ]);
    await database.client`update queue_jobs set claimed_at = null`;
    const jobs = [mine, given, taken].map((id) => ({ id, fence: 1 }));
    for (let times = 0; times < 2; times++) {
      expect(await beginJobs(database.db, tables, held, jobs)).toEqual(new Set([mine]));
    }
    expect((await jobRow(database.client, mine))?.claimed_at).not.toBeNull();
    for (const id of [given, taken]) expect((await jobRow(database.client, id))?.claimed_at).toBeNull();
    expect(await jobRow(database.client, mine)).toMatchObject({ fence: 1, attempt: 0, worker_id: 1 });
  });

  test('waits for a claim that is open, and does not begin what that has taken', async () => {
    const [one, two] = await twoBackends(database);
    await addJob(database.client, { maxAttempts: 1 });
    const jobs = await claim(database.db, { beginning: 0 });
    await begin(one);
    await claim(one.db, { workerId: 2, beginning: 0, fromGoneWorkers: true });
    const beginning = beginJobs(two.db, tables, held, jobs);
    await untilBlocked(database, two);
    await commit(one);
    expect(await beginning).toEqual(new Set());
  });

  test('leaves alone what another transaction has locked, where it is not to wait', async () => {
    const [one, two] = await twoBackends(database);
    const [locked, free] = await addJobs(database.client, [{ maxAttempts: 1 }, { maxAttempts: 1 }]);
    const jobs = await claim(database.db, { limit: 2, beginning: 0 });
    await begin(one);
    await one.client`select from queue_jobs where id = ${locked ?? 0} for update`;
    const lost = { id: 1_000_000, fence: 1 };
    expect(await beginFreeJobs(two.db, tables, held, [...jobs, lost])).toEqual({
      begun: new Set([free]),
      locked: new Set([locked]),
    });
    await expect(beginJobs(two.db, tables, held, jobs, { locks: 'briefly' })).rejects.toMatchObject({
      cause: { code: '55P03' },
    });
    await commit(one);
    expect((await two.client`show lock_timeout`)[0]).toEqual({ lock_timeout: '0' });
    expect(await beginFreeJobs(two.db, tables, held, jobs)).toEqual({
      begun: new Set([locked, free]),
      locked: new Set(),
    });
  });
});
