import { createQueue, createWorker, defineJob, handle, limitsIn } from 'drizzle-queue';
import * as control from 'drizzle-queue/schema/control';
import { beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { rescheduleJobs } from '../../src/core/queries/settle/reschedule-jobs.ts';
import {
  addGrouped,
  addWorkers,
  claimGroups,
  clearGroups,
  groupedTables,
} from '../queries/support/groups.ts';
import { addJob, addJobs, claim, jobRow } from '../queries/support/jobs.ts';
import { begin, commit, twoBackends } from '../queries/support/locks.ts';
import { addControlTables } from '../support/control-tables.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';
import { intercepted, recording, untouched } from './support/executors.ts';
import { endJob } from './support/lives.ts';

const database = useTestDatabase();
const queue = createQueue();
const work = defineJob('work', { queue: 'q' });

beforeAll(() => addControlTables(database));
beforeEach(() => clearGroups(database.client));

describe('a job of a plain queue', () => {
  test('is due now, if it was scheduled, and nothing else of it changes', async () => {
    const id = await addJob(database.client, {
      dueInMs: 3_600_000,
      attempt: 3,
      fence: 5,
      errors: [{ attempt: 3, at: '2024-01-01T00:00:00.000Z', name: 'Error', message: 'no' }],
    });
    const before = await jobRow(database.client, id);
    expect(await queue.runNow(database.db, id)).toEqual({ due: true });
    const after = await jobRow(database.client, id);
    expect({ ...after, run_at: before?.run_at }).toEqual(before);
    expect((await claim(database.db)).map((job) => job.id)).toEqual([id]);
  });

  test('keeps its place, if it was due', async () => {
    const [first] = await addJobs(database.client, [{ dueInMs: -5_000 }, { dueInMs: -4_000 }]);
    const before = await jobRow(database.client, first);
    expect(await queue.runNow(database.db, first)).toEqual({ due: true });
    expect(await jobRow(database.client, first)).toEqual(before);
  });

  test('says what stands in the way', async () => {
    const [running, parked] = await addJobs(database.client, [{ workerId: 3 }, {}]);
    await database.client`update queue_jobs set run_at = 'infinity' where id = ${parked}`;
    const { id: ended } = await queue.enqueue(database.db, work);
    await endJob(database.db, { kind: 'work' });
    const answers = await Promise.all(
      [running, parked, ended, 999_999].map((id) => queue.runNow(database.db, id)),
    );
    expect(answers).toEqual([
      { due: false, reason: 'running' },
      { due: false, reason: 'waiting' },
      { due: false, reason: 'finished' },
      { due: false, reason: 'not-found' },
    ]);
    expect(await jobRow(database.client, parked)).toMatchObject({ run_at: 'infinity' });
  });

  test('wakes its worker, which runs it at once', async () => {
    const { id } = await queue.enqueue(database.db, work, undefined, { delayMs: 3_600_000 });
    const worker = createWorker(database.db, {
      queue,
      pollIntervalMs: 60_000,
      handlers: [handle(work, () => undefined)],
    });
    worker.start();
    const ended = queue.waitFor(database.db, work, id);
    expect(await queue.runNow(database.db, id)).toEqual({ due: true });
    expect(await ended).toMatchObject({ state: 'completed', attempt: 1 });
    await worker.stop();
  });

  test('a transaction that rolls back has moved nothing', async () => {
    const id = await addJob(database.client, { dueInMs: 3_600_000 });
    const rolledBack = database.db.transaction(async (tx) => {
      expect(await queue.runNow(tx, id)).toEqual({ due: true });
      tx.rollback();
    });
    await expect(rolledBack).rejects.toThrow();
    expect(await queue.find(database.db, id)).toMatchObject({ state: 'scheduled' });
  });

  test('notifies once, and not at all without wake-ups', async () => {
    const id = await addJob(database.client, { dueInMs: 3_600_000 });
    const db = recording(database.db);
    await queue.runNow(db, id);
    expect(db.sent.filter(({ sql }) => sql.includes('pg_notify'))).toHaveLength(1);
    const silent = recording(database.db);
    const other = await addJob(database.client, { dueInMs: 3_600_000 });
    await createQueue({ wakeUps: false }).runNow(silent, other);
    expect(silent.sent.filter(({ sql }) => sql.includes('pg_notify'))).toEqual([]);
  });
});

describe('beside a claim', () => {
  test('that comes between the look and the move: the job runs, and is not moved', async () => {
    const id = await addJob(database.client);
    const db = intercepted(database.db, async (_, sent) => {
      if (sent.length === 1) expect(await claim(database.db)).toHaveLength(1);
    });
    expect(await queue.runNow(db, id)).toEqual({ due: false, reason: 'running' });
    expect(await jobRow(database.client, id)).toMatchObject({ worker_id: 1, fence: 1 });
  });

  test('that has locked the row: it tries again, and then says so', async () => {
    const [a] = await twoBackends(database);
    const id = await addJob(database.client, { dueInMs: 3_600_000 });
    await begin(a);
    await a.client`select from queue_jobs where queue = 'q' and id = ${id} for update`;
    expect(await queue.runNow(database.db, id)).toEqual({ due: false, reason: 'locked' });
    const waiting = queue.runNow(database.db, id);
    await commit(a);
    expect(await waiting).toEqual({ due: true });
  });

  test('many at once: each job runs once', async () => {
    const ran: number[] = [];
    const worker = createWorker(database.db, {
      queue,
      concurrency: 10,
      handlers: [handle(work, ({ job }) => void ran.push(job.id))],
    });
    worker.start();
    const entries = Array.from({ length: 60 }, () => ({ delayMs: 3_600_000 }));
    const enqueued = await queue.enqueueMany(database.db, work, entries);
    await Promise.all(
      enqueued.flatMap(({ id }) => [queue.runNow(database.db, id), queue.runNow(database.db, id)]),
    );
    await until(() => ran.length >= 60);
    await worker.stop();
    expect(ran.sort((a, b) => a - b)).toEqual(enqueued.map(({ id }) => id));
  });
});

describe('a job of a group', () => {
  const grouped = createQueue({ limits: limitsIn(control, { q: { groups: { serial: 'end' } } }) });
  const tables = groupedTables('end');
  const take = async (worker: number) =>
    (await claimGroups(database.db, worker, { limits: { run: 1 } }, 'end')).jobs;

  test('is noted for the claims, which find it without a wait', async () => {
    const [id = 0] = await addGrouped(database.client, [{ group: 'a', dueInMs: 3_600_000 }]);
    const [worker = 0] = await addWorkers(database.client);
    expect(await take(worker)).toEqual([]);
    expect(await grouped.runNow(database.db, id)).toEqual({ due: true });
    expect((await take(worker)).map((job) => job.id)).toEqual([id]);
  });

  test('that holds up its group for its next attempt goes first, at once', async () => {
    const [first = 0, second = 0] = await addGrouped(database.client, [{ group: 'a' }, { group: 'a' }]);
    const [worker = 0] = await addWorkers(database.client);
    const [held] = await take(worker);
    expect(held?.id).toBe(first);
    const error = { attempt: 1, name: 'Error', message: 'no' };
    const transition = { type: 'reschedule', delayMs: 3_600_000, attempt: 1, error } as const;
    await rescheduleJobs(database.db, tables, { queue: 'q', workerId: worker }, [
      { id: first, fence: held?.fence ?? 0, transition },
    ]);
    expect(await take(worker)).toEqual([]);
    // The one behind it is due, but may not go past it.
    expect(await grouped.runNow(database.db, second)).toEqual({ due: true });
    expect(await take(worker)).toEqual([]);
    expect(await grouped.runNow(database.db, first)).toEqual({ due: true });
    expect((await take(worker)).map(({ id }) => id)).toEqual([first]);
  });
});

test.each([0, -1, 1.5, '1', null, undefined, { all: true }])('%s is no id', async (id) => {
  // @ts-expect-error wrong on purpose
  await expect(queue.runNow(untouched(), id)).rejects.toThrow(/runNow: id must be a job id/);
});

describe('several at once', () => {
  test('are due now, in any queue, but for those that run, wait or are not there', async () => {
    const [later, due, running, parked, other] = await addJobs(database.client, [
      { dueInMs: 3_600_000 },
      {},
      { workerId: 4, dueInMs: 3_600_000 },
      {},
      { queue: 'other', dueInMs: 3_600_000 },
    ]);
    await database.client`update queue_jobs set run_at = 'infinity' where id = ${parked}`;
    expect(await queue.runNowMany(database.db, [later, due, running, parked, other, 999_999, later])).toEqual(
      { due: 3, locked: 0 },
    );
    expect(await queue.runNowMany(database.db, [])).toEqual({ due: 0, locked: 0 });
    const { jobs } = await queue.list(database.db, { state: 'due' });
    expect(jobs.map(({ id }) => id)).toEqual([other, due, later]);
  });

  test('against another transaction: what it holds is left alone, and counted', async () => {
    const [mine, held] = await addJobs(database.client, [{ dueInMs: 60_000 }, { dueInMs: 60_000 }]);
    const [one, two] = await twoBackends(database);
    await begin(one);
    await one.client`select from queue_jobs where queue = 'q' and id = ${held} for update`;
    expect(await queue.runNowMany(two.db, [mine, held])).toEqual({ due: 1, locked: 1 });
    await commit(one);
    expect(await queue.runNowMany(two.db, [mine, held])).toEqual({ due: 2, locked: 0 });
  });
});
