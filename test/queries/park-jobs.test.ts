import { createQueue, createWorker, defineJob, handle } from 'drizzle-queue';
import { beforeEach, describe, expect, test } from 'vitest';
import type { Park } from '../../src/core/job/transition.ts';
import { beginJobs } from '../../src/core/queries/begin/begin-jobs.ts';
import { findDue } from '../../src/core/queries/claim/find-due.ts';
import { requestCancel } from '../../src/core/queries/operate/request-cancel.ts';
import { parkJobs } from '../../src/core/queries/settle/park-jobs.ts';
import { atFaultPoints } from '../../src/core/sql/fault-point.ts';
import { wakeChannel } from '../../src/core/sql/wake-channel.ts';
import { Retries } from '../../src/core/time/retries.ts';
import { WorkerEmitter } from '../../src/core/worker/base/events.ts';
import { Settler } from '../../src/core/worker/settle/settle.ts';
import { unparkJobs } from '../../src/features/workflows/queries/unpark-jobs.ts';
import { type Connection, useTestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';
import { addJob, addJobs, claim, clearTables, jobRow, resultRow, tables } from './support/jobs.ts';
import { begin, commit, rollback, twoBackends, untilBlocked } from './support/locks.ts';

const database = useTestDatabase({ max: 10 });
const queue = createQueue({ tables });
const held = { queue: 'q', workerId: 1 };
const park: Park = { type: 'park', delayMs: null, attempt: 0, error: null };

beforeEach(() => clearTables(database.client));

type Db = Pick<Connection, 'db'>;

async function claimed({ db }: Db = database): Promise<number> {
  const id = await addJob(database.client);
  expect(await claim(db)).toMatchObject([{ id, attempt: 1, fence: 1 }]);
  return id;
}

const parkOne = ({ db }: Db, id: number, transition = park) =>
  parkJobs(db, tables, held, [{ id, fence: 1, transition }]);
const unpark = ({ db }: Db, ...ids: number[]) =>
  unparkJobs(db, tables, { queue: 'q', ids, onlyWaiting: true, channel: undefined });
const written = (id: number) => ({ parked: new Map([[id, null]]), locked: new Set() });

describe('a job that is parked', () => {
  test('is held by nobody, is claimed by nobody, and has spent no attempt', async () => {
    const id = await claimed();
    expect(await parkOne(database, id)).toEqual(written(id));
    expect(await jobRow(database.client, id)).toMatchObject({
      worker_id: null,
      claimed_at: null,
      attempt: 0,
      fence: 1,
      run_at: 'infinity',
    });
    expect(await claim(database.db, { fromGoneWorkers: true })).toEqual([]);
    const looks = [{ queue: 'q', floorMs: Number.NEGATIVE_INFINITY }];
    const due = await findDue(database.db, tables, { looks, kinds: ['k'], horizonMs: 1e12 });
    expect(due).toMatchObject([{ dueInMs: undefined }]);
  });

  test('is due where it was woken while it was held, though the record of its beginning comes once more', async () => {
    const id = await addJob(database.client, { maxAttempts: 1 });
    await claim(database.db);
    await database.client`update queue_jobs set claimed_at = null where id = ${id}`;
    expect(await beginJobs(database.db, tables, held, [{ id, fence: 1 }])).toEqual(new Set([id]));
    await unpark(database, id);
    expect(await beginJobs(database.db, tables, held, [{ id, fence: 1 }])).toEqual(new Set([id]));
    await parkOne(database, id);
    expect(await queue.find(database.db, id)).toMatchObject({ state: 'due' });
  });

  test('is found as waiting, with no time at which it is due', async () => {
    const id = await claimed();
    await parkOne(database, id);
    expect(await queue.find(database.db, id)).toMatchObject({ state: 'waiting', runAt: null });
    expect((await queue.list(database.db, { state: 'waiting' })).jobs).toMatchObject([{ id, runAt: null }]);
    expect((await queue.list(database.db, { state: 'scheduled' })).jobs).toEqual([]);
  });

  test('is not taken for one whose claim is refused, although it once was', async () => {
    const refused = { attempt: 1, message: 'no', at: '2024-01-01T00:00:00.000Z' };
    const errors = ['Error', 'ClaimRefusedError'].map((name) => ({ ...refused, name }));
    const id = await addJob(database.client, { workerId: 1, fence: 1, attempt: 2, errors });
    await parkOne(database, id);
    expect(await queue.runNow(database.db, id)).toEqual({ due: false, reason: 'waiting' });
    expect(await queue.runNowMany(database.db, [id])).toEqual({ due: 0, locked: 0 });
    const { vitals } = await queue.vitals(database.db);
    expect(vitals.find(({ code }) => code === 'claims-refused')?.severity).toBe('ok');
    expect((await queue.find(database.db, id))?.errors).toMatchObject([{ name: 'Error' }]);
  });

  test('for a time is due when that is over', async () => {
    const id = await claimed();
    await parkOne(database, id, { ...park, delayMs: 3_600_000 });
    const found = await queue.find(database.db, id);
    expect(found?.state).toBe('scheduled');
    expect(Number(found?.runAt)).toBeGreaterThan(Date.now() + 3_000_000);
  });

  test('is due when it is unparked, and is found by a claim', async () => {
    const id = await claimed();
    await parkOne(database, id);
    expect(await unpark(database, id, id + 1)).toEqual(new Set([id]));
    expect(await claim(database.db)).toMatchObject([{ id, attempt: 1, fence: 2 }]);
  });

  test('is cancelled like any that waits, and its result has a time', async () => {
    const id = await claimed();
    await parkOne(database, id);
    expect(await queue.cancel(database.db, id)).toEqual({ cancelled: true });
    const result = await resultRow(database.client, id);
    expect(result?.run_at).toBe(result?.finished_at);
    const found = await queue.find(database.db, id);
    expect(found).toMatchObject({ state: 'cancelled', runAt: expect.any(Date) });
    expect(Number(found?.runAt)).not.toBeNaN();
    expect(await unpark(database, id)).toEqual(new Set());
  });

  test('by another fence or another worker is not', async () => {
    const id = await claimed();
    const before = await jobRow(database.client, id);
    const none = { parked: new Map(), locked: new Set() };
    expect(await parkJobs(database.db, tables, held, [{ id, fence: 2, transition: park }])).toEqual(none);
    const other = { queue: 'q', workerId: 2 };
    expect(await parkJobs(database.db, tables, other, [{ id, fence: 1, transition: park }])).toEqual(none);
    expect(await jobRow(database.client, id)).toEqual(before);
  });
});

describe('no wake-up is lost', () => {
  test('when it comes while the job is still held: it is not parked, and due at once', async () => {
    const id = await claimed();
    expect(await unpark(database, id)).toEqual(new Set([id]));
    expect(await jobRow(database.client, id)).toMatchObject({ worker_id: 1 });
    expect(await parkOne(database, id)).toEqual(written(id));
    expect(await claim(database.db)).toMatchObject([{ id, attempt: 1, fence: 2 }]);
  });

  test('when it waits for the park, and sees the job as it is then', async () => {
    const [one, two] = await twoBackends(database);
    const id = await claimed();
    await begin(one);
    await parkOne(one, id);
    const unparking = unpark(two, id);
    await untilBlocked(one, two);
    await commit(one);
    expect(await unparking).toEqual(new Set([id]));
    expect(await claim(database.db)).toMatchObject([{ id, fence: 2 }]);
  });

  test('when it began before the claim, and waits for it', async () => {
    const [one, two] = await twoBackends(database);
    const id = await addJob(database.client);
    await begin(one);
    // The row is locked before the unpark begins, and claimed after that.
    await one.client`select from queue_jobs where id = ${id} for update`;
    const unparking = unpark(two, id);
    await untilBlocked(one, two);
    expect(await claim(one.db)).toMatchObject([{ id, fence: 1 }]);
    await commit(one);
    await unparking;
    await parkOne(database, id);
    expect(await claim(database.db)).toMatchObject([{ id, fence: 2 }]);
  });

  test('when the park meets an unpark that is not committed: it waits for nobody, and comes again', async () => {
    const [app] = await twoBackends(database);
    const id = await claimed();
    await begin(app);
    await unpark(app, id);
    expect(await parkOne(database, id)).toEqual({ parked: new Map(), locked: new Set([id]) });
    await commit(app);
    expect(await parkOne(database, id)).toEqual(written(id));
    expect(await claim(database.db)).toMatchObject([{ id, fence: 2 }]);
  });

  test('but one that is rolled back wakes nobody', async () => {
    const [app] = await twoBackends(database);
    const id = await claimed();
    await parkOne(database, id);
    await begin(app);
    await unpark(app, id);
    await rollback(app);
    expect(await claim(database.db, { fromGoneWorkers: true })).toEqual([]);
  });

  test('in 100 races of both at once', async () => {
    const [one, two] = await twoBackends(database);
    const ids = await addJobs(
      database.client,
      Array.from({ length: 100 }, () => ({})),
    );
    await claim(database.db, { limit: 100 });
    for (const id of ids) {
      const parking = async (): Promise<void> => {
        const { locked } = await parkOne(one, id);
        if (locked.size > 0) await parking();
      };
      await Promise.all([parking(), unpark(two, id)]);
    }
    expect(await claim(database.db, { limit: 100 })).toHaveLength(100);
  });
});

describe('a cancel', () => {
  test('that was asked for during the hold keeps the job from waiting', async () => {
    const id = await claimed();
    await requestCancel(database.db, tables, { id, queue: 'q', reason: 'unwanted', channel: undefined });
    expect(await parkOne(database, id)).toMatchObject({ parked: new Map([[id, 'unwanted']]) });
    expect(await claim(database.db)).toMatchObject([{ id, cancelReason: 'unwanted' }]);
  });

  test('and an unpark at once: one of them comes first, and the job ends', async () => {
    const [one, two] = await twoBackends(database);
    const id = await claimed();
    await parkOne(database, id);
    await begin(one);
    expect(await queue.cancel(one.db, id)).toEqual({ cancelled: true });
    const unparking = unpark(two, id);
    await untilBlocked(one, two);
    await commit(one);
    expect(await unparking).toEqual(new Set());
    expect(await queue.find(database.db, id)).toMatchObject({ state: 'cancelled' });
  });
});

describe('a worker', () => {
  test('settles it with its other transitions, also when the answer is lost', async () => {
    const events = new WorkerEmitter();
    events.on('error', () => {});
    const ids = await addJobs(database.client, [{}, {}]);
    await claim(database.db, { limit: 2 });
    const settler = new Settler({
      db: database.db,
      tables,
      holder: held,
      events,
      retries: new Retries(),
      giveUp: new AbortController().signal,
    });
    let passed = 0;
    atFaultPoints(async (point) => {
      if (point === 'settle: parked' && ++passed === 1) throw new Error('the connection broke');
    });
    const answers = await Promise.all(ids.map((id) => settler.settle({ id, fence: 1, transition: park })));
    atFaultPoints();
    expect(answers).toEqual(['written', 'written']);
    expect(passed).toBe(2);
  });

  test('is notified of an unpark when its transaction commits', async () => {
    const work = defineJob('k', { queue: 'q' });
    const id = await claimed();
    await parkOne(database, id);
    const worker = createWorker(database.db, {
      queue,
      handlers: [handle(work, () => undefined)],
      pollIntervalMs: 60_000,
    });
    const listening = new Promise<void>((resolve) => worker.on('listening', resolve));
    const idle = new Promise<void>((resolve) => worker.on('idle', () => resolve()));
    await worker.start();
    await Promise.all([listening, idle]);
    await database.db.transaction((tx) =>
      unparkJobs(tx, tables, { queue: 'q', ids: [id], onlyWaiting: true, channel: wakeChannel(tables) }),
    );
    await until(async () => (await queue.find(database.db, id))?.state === 'completed');
    await worker.stop();
  });
});
