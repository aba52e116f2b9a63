import { beforeEach, describe, expect, test } from 'vitest';
import { requestCancel } from '../../src/core/queries/operate/request-cancel.ts';
import { cancelJob } from '../../src/core/queries/settle/cancel-job.ts';
import { finishJobs } from '../../src/core/queries/settle/finish-jobs.ts';
import { rescheduleJobs } from '../../src/core/queries/settle/reschedule-jobs.ts';
import type { Executor } from '../../src/core/sql/executor.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { addJob, claim, clearTables, jobRow, resultRow, tables } from './support/jobs.ts';
import { begin, commit, rollback, twoBackends, untilBlocked } from './support/locks.ts';

const database = useTestDatabase();

beforeEach(() => clearTables(database.client));

const held = { queue: 'q', workerId: 1 };
const request = (db: Executor, id: number, { queue = 'q', reason = 'why' } = {}) =>
  requestCancel(db, tables, { id, queue, reason, channel: undefined });
const force = (db: Executor, id: number) =>
  cancelJob(db, tables, {
    id,
    queue: 'q',
    reason: { attempt: 1, name: 'Cancelled', message: 'by force' },
    force: { channel: undefined },
  });
const complete = (db: Executor, id: number, fence = 1) =>
  finishJobs(db, tables, held, [
    {
      id,
      fence,
      transition: { type: 'finish', state: 'completed', output: '1', error: null, keepResult: true },
    },
  ]);
const putBack = (db: Executor, id: number, fence = 1) =>
  rescheduleJobs(db, tables, held, [
    { id, fence, transition: { type: 'reschedule', delayMs: null, attempt: 0, error: null } },
  ]);
const heldJob = () => addJob(database.client, { workerId: 1, fence: 1, attempt: 1 });

describe('a request', () => {
  test('changes its row in nothing else, and the first reason stays', async () => {
    const id = await heldJob();
    const before = await jobRow(database.client, id);
    expect(await request(database.db, id)).toBe(true);
    expect(await request(database.db, id, { reason: 'another' })).toBe(true);
    expect(await jobRow(database.client, id)).toEqual({ ...before, cancel_reason: 'why' });
  });

  test('is refused by a job that waits, one of another queue, and one that is not there', async () => {
    const waiting = await addJob(database.client);
    const other = await addJob(database.client, { queue: 'other', workerId: 1 });
    for (const id of [waiting, other, 999_999]) expect(await request(database.db, id)).toBe(false);
    expect(await jobRow(database.client, waiting)).toMatchObject({ cancel_reason: null });
  });

  test('that is rolled back never was', async () => {
    const id = await heldJob();
    const [one] = await twoBackends(database);
    await begin(one);
    await request(one.db, id);
    await rollback(one);
    expect(await jobRow(database.client, id)).toMatchObject({ cancel_reason: null });
  });

  test.each([
    ['a completion', complete],
    ['a reschedule', putBack],
  ])('does not wait for %s that is under way', async (_, settle) => {
    const id = await heldJob();
    const [one, two] = await twoBackends(database);
    await begin(one);
    await settle(one.db, id);
    expect(await request(two.db, id)).toBe(false);
    expect(await force(two.db, id)).toBe(false);
    await commit(one);
  });

  test('that is not committed yet makes a reschedule wait, which then sees it', async () => {
    const id = await heldJob();
    const [one, two] = await twoBackends(database);
    await begin(one);
    await request(one.db, id);
    const settled = putBack(two.db, id);
    await untilBlocked(database, two);
    await commit(one);
    expect(await settled).toEqual(new Map([[id, 'why']]));
  });

  test('does not keep a completion from taking effect', async () => {
    const id = await heldJob();
    const [one, two] = await twoBackends(database);
    await begin(one);
    await request(one.db, id);
    const settled = complete(two.db, id);
    await untilBlocked(database, two);
    await commit(one);
    expect(await settled).toEqual(new Set([id]));
    expect(await resultRow(database.client, id)).toMatchObject({ state: 'completed' });
  });

  test('goes with the job to whoever claims it next', async () => {
    const id = await heldJob();
    await request(database.db, id);
    await putBack(database.db, id);
    expect(await claim(database.db, { workerId: 2 })).toMatchObject([{ id, cancelReason: 'why' }]);
  });
});

describe('a cancel by force', () => {
  test('that is not committed yet makes a completion wait, which then has no effect', async () => {
    const id = await heldJob();
    const [one, two] = await twoBackends(database);
    await begin(one);
    expect(await force(one.db, id)).toBe(true);
    const settled = complete(two.db, id);
    await untilBlocked(database, two);
    await commit(one);
    expect(await settled).toEqual(new Set());
    expect(await resultRow(database.client, id)).toMatchObject({
      state: 'cancelled',
      fence: 1,
      worker_id: 1,
    });
  });

  test('that rolls back lets the completion through', async () => {
    const id = await heldJob();
    const [one, two] = await twoBackends(database);
    await begin(one);
    await force(one.db, id);
    const settled = complete(two.db, id);
    await untilBlocked(database, two);
    await rollback(one);
    expect(await settled).toEqual(new Set([id]));
  });

  test('of many cancels and completions at once, one wins each job', async () => {
    const [one, two] = await twoBackends(database);
    for (let round = 0; round < 50; round++) {
      const id = await heldJob();
      const [forced, completed] = await Promise.all([force(one.db, id), complete(two.db, id)]);
      expect(Number(forced) + completed.size).toBe(1);
      const state = forced ? 'cancelled' : 'completed';
      expect(await resultRow(database.client, id)).toMatchObject({ state });
    }
  });
});
