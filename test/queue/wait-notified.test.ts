import { drizzle } from 'drizzle-orm/node-postgres';
import {
  createQueue,
  type Database,
  defineJob,
  drain,
  type Executor,
  fixedBackoff,
  handle,
  JobGoneError,
  NonRetryableError,
  runNext,
  snooze,
  unvalidated,
} from 'drizzle-queue';
import pg from 'pg';
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { notifyOfEnds } from '../../src/core/queries/settle/notify-of-ends.ts';
import { addJob, clearTables, tables } from '../queries/support/jobs.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';
import { intercepted } from './support/executors.ts';
import { endJob } from './support/lives.ts';

const database = useTestDatabase({ max: 4 });
const queue = createQueue();
const resize = defineJob('resize', {
  payload: unvalidated<number>(),
  queue: 'q',
  backoff: fixedBackoff(60_000),
});
const CHANNEL = 'queue_end_queue_jobs';

beforeEach(async () => {
  await clearTables(database.client);
  // Those of the test before stay for a second.
  await until(async () => (await listeners()).length === 0);
});
afterEach(() => vi.restoreAllMocks());

/** From here on who polls looks again after 25 seconds, so what is seen sooner was notified. */
const pollSeldom = () => vi.spyOn(Math, 'random').mockReturnValue(1_000);
const notified = { awaited: true, timeoutMs: 20_000 };

type Step = (text: string, n: number) => unknown;

/** The database with something before each of its statements; it can listen as the one that it stands for. */
function watched(db: Database, before: Step = () => undefined): Executor & { readonly texts: string[] } {
  const texts: string[] = [];
  const executor = intercepted(db, async ({ sql }) => {
    texts.push(sql);
    await before(sql, texts.length);
  });
  return Object.assign(executor, { texts, $client: Reflect.get(db, '$client') });
}

const looksOf = ({ texts }: { texts: readonly string[] }) =>
  texts.filter((text) => text.includes('jsonb_agg(j.id)')).length;

async function enqueue(n = 1, awaited = true): Promise<number> {
  return (await queue.enqueue(database.db, resize, n, { awaited })).id;
}

const work = (db: Database = database.db) =>
  drain(db, { queue, handlers: [handle(resize, ({ payload }) => payload * 2)], deadlineMs: 60_000 });

/** The connections that listen for the ends of jobs. */
async function listeners(): Promise<number[]> {
  const rows = await database.client<{ pid: number }[]>`
    select pid from pg_stat_activity
    where datname = current_database() and query ilike ${`listen "${CHANNEL}"%`}`;
  return rows.map(({ pid }) => pid);
}

async function kill(pid: number): Promise<void> {
  await database.client`select pg_terminate_backend(${pid}::int, 5000::int8)`;
}

/** The ids of the end notices that a connection hears. */
async function notices(): Promise<number[]> {
  const [connection] = await database.connect();
  const heard: number[] = [];
  const listening = await connection?.client.listen(CHANNEL, (ids) =>
    heard.push(...ids.split(' ').map(Number)),
  );
  onTestFinished(() => listening?.unlisten());
  return heard;
}

const drivers: Readonly<Record<string, () => Database>> = {
  'postgres.js': () => database.db,
  'node-postgres': () => {
    const pool = new pg.Pool({ connectionString: database.url, max: 2 });
    pool.on('error', () => undefined);
    onTestFinished(() => pool.end());
    return drizzle({ client: pool });
  },
};

describe.each(Object.entries(drivers))('notified over %s', (_, open) => {
  test('an end is seen at its notice, long before the next look', async () => {
    pollSeldom();
    const db = watched(open());
    const id = await enqueue(21);
    const waiting = queue.waitFor(db, resize, id, notified);
    await until(async () => (await listeners()).length > 0);
    await work();
    expect(await waiting).toMatchObject({ id, state: 'completed', output: 42 });
  });

  test('a killed connection is made anew', async () => {
    const db = watched(open());
    const id = await enqueue();
    const waiting = queue.waitFor(db, resize, id, notified);
    const first = await until(async () => (await listeners())[0]);
    await kill(first ?? 0);
    await until(async () => (await listeners()).some((pid) => pid !== first));
    // The next look is the last one for long.
    pollSeldom();
    const looks = looksOf(db);
    await until(() => looksOf(db) > looks);
    await work();
    expect(await waiting).toMatchObject({ id, state: 'completed' });
  });

  test('what ended while the connection was lost is found when the loss is noticed', async () => {
    pollSeldom();
    const id = await enqueue();
    const waiting = queue.waitFor(watched(open()), resize, id, notified);
    const pid = await until(async () => (await listeners())[0]);
    // It sends no notice.
    await endJob(database.db, { kind: 'resize' });
    await kill(pid ?? 0);
    expect(await waiting).toMatchObject({ id, state: 'completed' });
  });

  test('1,000 who wait are answered by a few statements', async () => {
    pollSeldom();
    const db = watched(open());
    const entries = Array.from({ length: 1_000 }, (_, n) => ({ payload: n, awaited: true }));
    const jobs = await queue.enqueueMany(database.db, resize, entries);
    const waiting = jobs.map(({ id }) => queue.waitFor(db, resize, id, notified));
    await until(async () => (await listeners()).length > 0);
    const startMs = performance.now();
    await work();
    const outputs = (await Promise.all(waiting)).map(
      (record) => record.state === 'completed' && record.output,
    );
    expect(outputs).toEqual(entries.map(({ payload }) => payload * 2));
    // Ends are told of every 50 ms, and each notice is a reason for a look or two.
    expect(db.texts.length).toBeLessThan(50 + (2 * (performance.now() - startMs)) / 50);
  });
});

describe('an end notice', () => {
  test('is sent for every end of a job that asked for it, once, and for no other', async () => {
    const heard = await notices();
    const plain = await enqueue(0, false);
    const ids: number[] = [];
    for (const n of [1, 2, 3, 4, 5]) ids.push(await enqueue(n));
    const handlers = [
      handle(resize, async ({ payload, complete }) => {
        if (payload === 2) throw new NonRetryableError('no');
        if (payload === 3) await database.db.transaction((tx) => complete(tx, 6));
        if (payload === 4) return snooze(3_600_000);
        if (payload === 5) throw new Error('again');
        return payload;
      }),
    ];
    await drain(database.db, { queue, handlers, deadlineMs: 60_000 });
    await until(() => heard.length >= 3);
    const last = await enqueue(7);
    const ran = await runNext(database.db, { queue, handlers, id: last });
    expect(ran?.outcome).toBe('completed');
    await until(() => heard.includes(last));
    expect(heard.toSorted((a, b) => a - b)).toEqual([ids[0], ids[1], ids[2], last]);
    expect(await queue.find(database.db, plain)).toMatchObject({ state: 'completed', metadata: {} });
  });

  test('is sent as well for an end that runNext writes after it has rolled everything back', async () => {
    const heard = await notices();
    const hanging = defineJob('hanging', { queue: 'q', timeoutMs: 50, maxAttempts: 1 });
    const { id } = await queue.enqueue(database.db, hanging, undefined, { awaited: true });
    const handlers = [handle(hanging, () => new Promise<void>(() => {}))];
    expect(await runNext(database.db, { queue, handlers })).toMatchObject({ outcome: 'failed' });
    expect(await queue.find(database.db, id)).toMatchObject({ state: 'discarded' });
    await notifyOfEnds(database.db, tables, [0]);
    await until(() => heard.includes(0));
    expect(heard).toEqual([id, 0]);
  });

  test('travels in the metadata, beside the own', async () => {
    const { id } = await queue.enqueue(database.db, resize, 1, { awaited: true, metadata: { tenant: 7 } });
    const record = await queue.find(database.db, id);
    expect(record?.metadata).toEqual({ 'drizzle_queue.awaited': true, tenant: 7 });
    expect((await queue.find(database.db, await enqueue()))?.metadata).toEqual({
      'drizzle_queue.awaited': true,
    });
  });

  test('names more jobs than one notification can', async () => {
    const heard = await notices();
    const ids = Array.from({ length: 1_001 }, (_, n) => 9_007_199_254_739_991 - n);
    await notifyOfEnds(database.db, tables, ids);
    await until(() => heard.length === ids.length);
    expect(heard).toEqual(ids);
  });
});

const cancels: Readonly<Record<string, (db: Executor, id: number) => Promise<unknown>>> = {
  cancel: (db, id) => queue.cancel(db, id),
  'cancel with force': (db, id) => queue.cancel(db, id, { force: true }),
  cancelMany: (db, id) => queue.cancelMany(db, { ids: [id] }),
};

describe.each(Object.entries(cancels))('%s', (name, cancel) => {
  const state = name === 'cancel with force' ? { workerId: 4 } : {};
  const add = (metadata: Readonly<Record<string, unknown>>) =>
    addJob(database.client, { queue: 'q', kind: 'resize', metadata, ...state });
  const awaited = { 'drizzle_queue.awaited': true, tenant: 7 };
  /** What is heard after this was notified before. */
  const mark = async (heard: readonly number[], marker: number) => {
    await notifyOfEnds(database.db, tables, [marker]);
    await until(() => heard.includes(marker));
  };

  test('tells those who wait for a job that asks for it with its own commit, and no others', async () => {
    const heard = await notices();
    const [connection] = await database.connect();
    const id = await add(awaited);
    const plain = await add({ 'drizzle_queue.awaited': 'no' });
    await connection?.db.transaction(async (tx) => {
      await cancel(tx, plain);
      await cancel(tx, id);
      await mark(heard, 1_000_001);
      expect(heard).toEqual([1_000_001]);
    });
    await until(() => heard.includes(id));
    await mark(heard, 1_000_002);
    expect(heard).toEqual([1_000_001, id, 1_000_002]);
    expect(await queue.find(database.db, plain)).toMatchObject({ state: 'cancelled' });
  });

  test('tells nobody when it is rolled back', async () => {
    const heard = await notices();
    const id = await add(awaited);
    const cancelled = database.db.transaction(async (tx) => {
      await cancel(tx, id);
      throw new Error('no');
    });
    await expect(cancelled).rejects.toThrow('no');
    await mark(heard, 1_000_003);
    expect(heard).toEqual([1_000_003]);
  });

  test('ends a wait at once', async () => {
    pollSeldom();
    const [connection] = await database.connect();
    const id = await add(awaited);
    const waiting = queue.waitFor(watched(database.db), resize, id, notified);
    await until(async () => (await listeners()).length > 0);
    if (connection !== undefined) await cancel(connection.db, id);
    expect(await waiting).toMatchObject({ id, state: 'cancelled' });
  });
});

test('cancelMany tells of each of many', async () => {
  const heard = await notices();
  const entries = Array.from({ length: 1_200 }, (_, n) => ({ payload: n, awaited: n % 2 === 0 }));
  const jobs = await queue.enqueueMany(database.db, resize, entries);
  expect(await queue.cancelMany(database.db, { kind: 'resize' })).toMatchObject({ cancelled: 1_200 });
  await until(() => heard.length === 600);
  expect(heard.toSorted((a, b) => a - b)).toEqual(jobs.filter((_, n) => n % 2 === 0).map(({ id }) => id));
});

describe('without a notice', () => {
  test('a job that ended before anybody listened is found when the connection is there', async () => {
    pollSeldom();
    const id = await enqueue();
    let open: () => void = () => undefined;
    const opened = new Promise<void>((resolve) => {
      open = resolve;
    });
    const { listen } = database.client;
    const $client = Object.assign(() => undefined, {
      listen: async (...given: Parameters<typeof listen>) => {
        await opened;
        return await listen(...given);
      },
    });
    const db = Object.assign(watched(database.db), { $client });
    const waiting = queue.waitFor(db, resize, id, notified);
    await until(() => looksOf(db) === 1);
    await work();
    open();
    expect(await waiting).toMatchObject({ id, state: 'completed' });
  });

  test('a job that nobody flagged is polled for', async () => {
    const db = watched(database.db);
    const id = await enqueue(1, false);
    const waiting = queue.waitFor(db, resize, id, notified);
    await until(async () => (await listeners()).length > 0);
    await work();
    expect(await waiting).toMatchObject({ id });
  });

  test('an enqueue that was rolled back is gone', async () => {
    let id = 0;
    const enqueued = database.db.transaction(async (tx) => {
      ({ id } = await queue.enqueue(tx, resize, 1, { awaited: true }));
      throw new Error('no');
    });
    await expect(enqueued).rejects.toThrow('no');
    await expect(queue.waitFor(database.db, resize, id, notified)).rejects.toThrow(JobGoneError);
  });

  test('a driver that cannot listen polls, and says so once', async () => {
    const warned = vi.spyOn(process, 'emitWarning').mockImplementation(() => undefined);
    const db = intercepted(database.db, async () => undefined);
    for (const n of [1, 2]) {
      const running = queue.run(db, resize, n, { awaited: true });
      await until(() => work().then(({ completed }) => completed === 1));
      expect(await running).toBe(n * 2);
    }
    expect(warned).toHaveBeenCalledOnce();
    expect(warned.mock.calls[0]?.[0]).toContain('cannot listen for notifications');
  });
});

test('what is no boolean is refused, and enqueueFrom knows no such option', async () => {
  // Callers without TypeScript.
  const awaited = 'yes' as unknown as boolean;
  const message = /awaited must be true or false|awaited must be a boolean/;
  await expect(queue.enqueue(database.db, resize, 1, { awaited })).rejects.toThrow(message);
  await expect(queue.waitFor(database.db, resize, 1, { awaited })).rejects.toThrow(message);
  await expect(queue.run(database.db, resize, 1, { awaited })).rejects.toThrow(message);
  const select = database.db.select({ payload: tables.queueJobs.id }).from(tables.queueJobs);
  const options = { awaited: true } as object;
  // As above.
  await expect(queue.enqueueFrom(database.db, defineJob('x'), select as never, options)).rejects.toThrow(
    TypeError,
  );
  expect(await queue.list(database.db)).toMatchObject({ jobs: [] });
});
