import { sql } from 'drizzle-orm';
import {
  cancel,
  createQueue,
  createWorker,
  defineJob,
  fixedBackoff,
  type Handler,
  handle,
  NonRetryableError,
  QueueError,
  runNext,
  snooze,
  unvalidated,
} from 'drizzle-queue';
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { sqlStateOf } from '../../src/core/sql/executor.ts';
import { clearTables } from '../queries/support/jobs.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';
import { nextEvent } from '../worker/next-event.ts';
import { expectDenied } from './denied.ts';
import { type RoleName, useRoles } from './use-roles.ts';

const database = useTestDatabase();
const roles = useRoles(database, ['grant ']);
const queue = createQueue();
const work = defineJob('work', {
  payload: unvalidated<string>(),
  maxAttempts: 2,
  backoff: fixedBackoff(0),
});
const db = (role: RoleName) => roles.as(role).db;

beforeEach(() => clearTables(database.client));

describe('a role that enqueues only', () => {
  const numbers = () =>
    db('app_web')
      .select({ n: sql<number>`n`.as('n') })
      .from(sql`generate_series(1, 3) as n`);
  const count = defineJob('count', { payload: unvalidated<{ n: number }>() });

  test('enqueues in every way', async () => {
    const web = db('app_web');
    const first = await queue.enqueue(web, work, 'a', { uniqueKey: 'k' });
    expect(await queue.enqueue(web, work, 'a', { uniqueKey: 'k' })).toEqual({
      id: first.id,
      duplicate: true,
      outcome: 'duplicate',
    });
    await queue.enqueueMany(web, work, [{ payload: 'b' }, { payload: 'c', queue: 'other' }]);
    const many = await queue.enqueueMany(web, work, [
      { payload: 'd', uniqueKey: 'k' },
      { payload: 'e', uniqueKey: 'l' },
    ]);
    expect(many.map(({ duplicate }) => duplicate)).toEqual([true, false]);
    expect(await queue.enqueueFrom(web, count, numbers())).toEqual({ enqueued: 3, duplicates: 0 });
    const options = { uniqueKey: ({ n }: { n: unknown }) => sql`${n}::text` };
    await queue.enqueueFrom(web, count, numbers(), options);
    expect(await queue.enqueueFrom(web, count, numbers(), options)).toEqual({ enqueued: 0, duplicates: 3 });
    expect(await queue.enqueueQuery(web, work, 'f')).toEqual([{ id: expect.any(Number), duplicate: false }]);
    expect(await queue.enqueueQuery(web, work, 'a', { uniqueKey: 'k' })).toEqual([
      { id: first.id, duplicate: true },
    ]);
    expect((await queue.list(database.db)).jobs).toHaveLength(11);
  });

  test('does nothing else', async () => {
    const web = db('app_web');
    const { id } = await queue.enqueue(web, work, 'a secret');
    await expectDenied(queue.find(web, id));
    await expectDenied(queue.list(web));
    await expectDenied(queue.cancel(web, id));
    await expectDenied(queue.redrive(web, { all: true }));
    await expectDenied(queue.pause(web, 'default'));
    await expectDenied(queue.resume(web, 'default'));
    const { client } = roles.as('app_web');
    for (const statement of [
      'select payload from queue_jobs',
      'select * from queue_results',
      'select * from queue_workers',
      'update queue_jobs set priority = 0',
      'delete from queue_jobs',
      'truncate queue_jobs',
      `insert into queue_results (job_id, queue, kind, payload, state, attempt, max_attempts, priority, fence, created_at, run_at)
       values (1, 'q', 'k', '1', 'completed', 1, 1, 5, 1, now(), now())`,
    ]) {
      await expectDenied(client.unsafe(statement));
    }
    expect(await queue.find(database.db, id)).toMatchObject({ state: 'due', payload: 'a secret' });
  });
});

/** Ends each job as its payload says. */
const handler = (): Handler =>
  handle(work, async ({ payload, job, complete, db }) => {
    if (payload === 'fail once' && job.attempt === 1) throw new Error('no');
    if (payload === 'discard') throw new NonRetryableError('never');
    if (payload === 'snooze' && job.createdAt.getTime() === job.runAt.getTime()) return snooze(1);
    if (payload === 'cancel') return cancel('unwanted');
    if (payload === 'complete') await db.transaction((tx) => complete(tx, 'in a transaction'));
    return;
  });

describe('a role that works', () => {
  test('works, in every way, and listens, and prunes', async () => {
    const payloads = ['return', 'fail once', 'discard', 'snooze', 'cancel', 'complete'];
    await queue.enqueueMany(
      database.db,
      work,
      payloads.map((payload) => ({ payload })),
    );
    const worker = createWorker(db('app_worker'), { queue, handlers: [handler()] });
    const errors: unknown[] = [];
    worker.on('error', (event) => errors.push(event));
    const listening = nextEvent(worker, 'listening');
    await worker.start();
    await listening;
    const ended = () => queue.list(database.db).then(({ jobs }) => jobs.filter((job) => 'finishedAt' in job));
    await until(async () => (await ended()).length === payloads.length);
    await worker.stop();
    const states = (await ended()).map(({ payload, state }) => `${payload}: ${state}`);
    expect(states.sort()).toEqual([
      'cancel: cancelled',
      'complete: completed',
      'discard: discarded',
      'fail once: completed',
      'return: completed',
      'snooze: completed',
    ]);

    const pruning = createWorker(db('app_worker'), { queue, handlers: [handler()], retentionMs: 0 });
    pruning.on('error', (event) => errors.push(event));
    await pruning.start();
    await until(async () => (await ended()).length === 0);
    await pruning.stop();
    expect(errors).toEqual([]);
    expect([...(await database.client`select * from queue_workers`)]).toEqual([]);
  });

  test('does not enqueue', async () => {
    await expectDenied(queue.enqueue(db('app_worker'), work, 'a'));
    await expectDenied(queue.redrive(db('app_worker'), { all: true }));
    await expectDenied(queue.pause(db('app_worker'), 'default'));
  });

  const rights = [
    ['select', 'queue_jobs'],
    ['update', 'queue_jobs'],
    ['delete', 'queue_jobs'],
    ['select', 'queue_results'],
    ['insert', 'queue_results'],
    ['update', 'queue_results'],
    ['delete', 'queue_results'],
    ['select', 'queue_workers'],
    ['insert', 'queue_workers'],
    ['update', 'queue_workers'],
    ['delete', 'queue_workers'],
    ['select', 'queue_pauses'],
  ];

  test.each(rights)(
    'does not start without the right to %s %s, and says what to grant',
    async (right, table) => {
      await roles.run(`revoke ${right} on ${table} from app_worker`);
      const worker = createWorker(db('app_worker'), { queue, handlers: [handler()] });
      await expect(worker.start()).rejects.toBeInstanceOf(QueueError);
      const grant = `grant ${right} on "${table}" to ${roles.nameOf('app_worker')};`;
      await expect(worker.start()).rejects.toThrow(
        `The role ${roles.nameOf('app_worker')} lacks privileges that a worker needs. Run \`${grant}\``,
      );
      await database.client.unsafe(grant);
      // The same worker can be started once it may.
      await worker.start();
      await worker.stop();
    },
  );

  test('that loses a right while it works says so, loses no job, and goes on when it has the right again', async () => {
    const worker = createWorker(db('app_worker'), { queue, handlers: [handler()] });
    await worker.start();
    await roles.run('revoke delete on queue_jobs from app_worker');
    const refused = nextEvent(worker, 'error', ({ during }) => during.startsWith('settling'));
    const { id } = await queue.enqueue(database.db, work, 'return');
    const [{ error }] = await refused;
    expect(sqlStateOf(error)).toBe('42501');
    expect(await queue.find(database.db, id)).toMatchObject({ state: 'running', attempt: 1 });
    const completed = nextEvent(worker, 'completed');
    await roles.run('grant delete on queue_jobs to app_worker');
    await completed;
    await worker.stop();
    expect(await queue.find(database.db, id)).toMatchObject({ state: 'completed', attempt: 1 });
  });
});

test('a role that looks finds and lists, and changes nothing', async () => {
  const reader = db('app_reader');
  const { id } = await queue.enqueue(database.db, work, 'a');
  expect(await queue.find(reader, id)).toMatchObject({ payload: 'a' });
  expect((await queue.list(reader)).jobs).toHaveLength(1);
  await expectDenied(queue.enqueue(reader, work, 'b'));
  await expectDenied(queue.cancel(reader, id));
  await expectDenied(queue.redrive(reader, { all: true }));
  expect(await queue.paused(reader)).toEqual([]);
  await expectDenied(queue.pause(reader, 'default'));
  await expectDenied(roles.as('app_reader').client`delete from queue_workers`);
});

test('a role that intervenes cancels, redrives, pauses and resumes, and does not work', async () => {
  const admin = db('app_admin');
  const { id } = await queue.enqueue(admin, work, 'discard');
  expect(await queue.cancel(admin, id)).toEqual({ cancelled: true });
  const other = await queue.enqueue(admin, work, 'discard');
  const ran = await runNext(database.db, { queue, handlers: [handler()] });
  expect(ran).toMatchObject({ job: { id: other.id }, outcome: 'failed' });
  expect(await queue.redrive(admin, other.id)).toEqual({ redriven: 1, duplicates: 0 });
  expect(await queue.pause(admin, 'default')).toBe(true);
  expect(await queue.paused(admin)).toMatchObject([{ queue: 'default' }]);
  expect(await queue.resume(admin, 'default')).toBe(true);
  await expect(createWorker(admin, { queue, handlers: [handler()] }).start()).rejects.toThrow(
    'grant insert on "queue_workers"',
  );
});

test('a role that intervenes cancels a running job, and by force', async () => {
  const admin = db('app_admin');
  const worker = createWorker(db('app_worker'), {
    queue,
    handlers: [
      handle(work, async ({ signal }) => {
        await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
      }),
    ],
  });
  const errors: unknown[] = [];
  worker.on('error', (event) => errors.push(event));
  onTestFinished(() => worker.stop());
  await worker.start();
  const enqueueRunning = async () => {
    const { id } = await queue.enqueue(admin, work, 'a');
    await until(async () => (await queue.find(admin, id))?.state === 'running');
    return id;
  };
  const first = await enqueueRunning();
  const cancelled = nextEvent(worker, 'cancelled');
  expect(await queue.cancel(admin, first)).toEqual({ cancelled: 'requested' });
  await cancelled;
  expect(await queue.find(admin, first)).toMatchObject({ state: 'cancelled' });
  const second = await enqueueRunning();
  const lost = nextEvent(worker, 'lost');
  expect(await queue.cancel(admin, second, { force: true })).toEqual({ cancelled: true });
  expect(await queue.find(admin, second)).toMatchObject({ state: 'cancelled' });
  await lost;
  expect(errors).toEqual([]);
});

test('a role that runs jobs one by one needs less than a worker', async () => {
  await roles.run(`
    grant select, update, delete on queue_jobs to app_runner;
    grant select, insert on queue_results to app_runner;
    grant select on queue_workers, queue_pauses to app_runner`);
  for (const payload of ['return', 'discard', 'cancel', 'complete']) {
    await queue.enqueue(database.db, work, payload);
    expect(await runNext(db('app_runner'), { queue, handlers: [handler()] })).toMatchObject({
      job: { payload },
    });
  }
  await queue.enqueue(database.db, work, 'fail once');
  for (const outcome of ['failed', 'completed']) {
    expect(await runNext(db('app_runner'), { queue, handlers: [handler()] })).toMatchObject({ outcome });
  }
  await expectDenied(queue.enqueue(db('app_runner'), work, 'a'));
});
