import { setTimeout } from 'node:timers/promises';
import { sql } from 'drizzle-orm';
import { drizzle } from 'drizzle-orm/postgres-js';
import {
  createQueue,
  createWorker,
  defineJob,
  type Executor,
  handle,
  JobFailedError,
  JobGoneError,
  NonRetryableError,
  QueueError,
  unvalidated,
  WaitTimeoutError,
} from 'drizzle-queue';
import postgres from 'postgres';
import { afterEach, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { addJob, addJobs, clearTables } from '../queries/support/jobs.ts';
import { gate } from '../support/gate.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';
import { intercepted, untouched } from './support/executors.ts';
import { endJob } from './support/lives.ts';

const database = useTestDatabase();
const queue = createQueue();
const resize = defineJob('resize', { payload: unvalidated<{ url: string }>(), queue: 'q' });
const forget = defineJob('forget', { queue: 'q', keepResult: false });

beforeEach(() => clearTables(database.client));

type Step = (text: string, attempt: number) => unknown;

/** The database, with something before each of its statements, by their texts. */
function watched(before: Step): Executor & { readonly texts: string[]; readonly params: unknown[][] } {
  const texts: string[] = [];
  const params: unknown[][] = [];
  const db = intercepted(database.db, async ({ sql, params: given }) => {
    texts.push(sql);
    params.push(given);
    await before(sql, texts.length);
  });
  return { ...db, texts, params };
}

const looks = (texts: readonly string[]) => texts.filter((text) => text.includes('jsonb_agg(j.id)'));
const asked = (params: readonly unknown[] = []) => String(params[0]).match(/\d+/g)?.map(Number) ?? [];
const enqueue = async () => (await queue.enqueue(database.db, resize, { url: 'a' })).id;
const end = (state?: 'completed' | 'discarded') =>
  endJob(database.db, { kind: 'resize', output: { width: 3 }, ...(state && { state }) });
const endAll = () => database.client`
  with ended as (delete from queue_jobs returning *)
  insert into queue_results (job_id, queue, kind, payload, state, attempt, max_attempts, priority, fence,
    metadata, created_at, run_at, finished_at, errors)
  select id, queue, kind, payload, 'completed', 1, max_attempts, priority, fence, metadata, created_at,
    run_at, now(), '[]' from ended`;

describe('waitFor', () => {
  test('returns the final record of a job that ends later, whatever its end', async () => {
    const id = await enqueue();
    const waiting = queue.waitFor(database.db, resize, id);
    await end();
    expect(await waiting).toMatchObject({
      id,
      state: 'completed',
      output: { width: 3 },
      payload: { url: 'a' },
    });

    const last = await enqueue();
    await endJob(database.db, { kind: 'resize', output: { width: 4 }, keepResult: 'outcome' });
    expect(await queue.waitFor(database.db, resize, last)).toMatchObject({
      output: { width: 4 },
      payload: undefined,
    });

    const failing = await enqueue();
    const failed = queue.waitFor(database.db, resize, failing);
    await end('discarded');
    expect(await failed).toMatchObject({ id: failing, state: 'discarded', errors: [{ message: 'no' }] });

    const stopped = await enqueue();
    const cancelled = queue.waitFor(database.db, resize, stopped);
    await queue.cancel(database.db, stopped, 'enough');
    expect(await cancelled).toMatchObject({ state: 'cancelled', errors: [{ message: 'enough' }] });
  });

  test('finds at once what has ended before', async () => {
    const id = await enqueue();
    await end();
    const db = watched(() => undefined);
    expect(await queue.waitFor(db, resize, id)).toMatchObject({ id, state: 'completed' });
    expect(looks(db.texts)).toHaveLength(1);
  });

  test('a job that ends between the look and the read is found by the read', async () => {
    const id = await enqueue();
    const other = await addJob(database.client, { kind: 'resize', dueInMs: 3_600_000 });
    await queue.cancel(database.db, other);
    // The second statement asks for the other one, which has ended, and must not answer for the first.
    const db = watched(async (_, n) => {
      if (n === 2) await end();
    });
    const both = [queue.waitFor(db, resize, id), queue.waitFor(db, resize, other)];
    expect((await Promise.all(both)).map(({ state }) => state)).toEqual(['completed', 'cancelled']);
  });

  test('a job that is redriven between the look and the read is waited for again', async () => {
    const id = await enqueue();
    await end('discarded');
    let redriven = false;
    const db = watched(async (text) => {
      if (redriven || !text.includes('union all')) return;
      redriven = true;
      await queue.redrive(database.db, id);
    });
    const waiting = queue.waitFor(db, resize, id);
    await until(() => looks(db.texts).length > 2);
    await end();
    expect(await waiting).toMatchObject({ id, state: 'completed' });
  });

  test('two waiters on one job, one of whom comes during a look, get the record each', async () => {
    const id = await enqueue();
    let second: Promise<unknown> | undefined;
    const db = watched(async (text) => {
      if (second !== undefined || !text.includes('jsonb_agg')) return;
      second = queue.waitFor(db, resize, id);
      await end();
    });
    expect(await queue.waitFor(db, resize, id)).toMatchObject({ id, state: 'completed' });
    expect(await second).toMatchObject({ id, state: 'completed' });
  });

  test('the end of the time is no end of the job: the next wait sees it', async () => {
    const id = await enqueue();
    const early = queue.waitFor(database.db, resize, id, { timeoutMs: 40 });
    await expect(early).rejects.toThrow(WaitTimeoutError);
    await expect(early).rejects.toMatchObject({ jobId: id, kind: 'resize', timeoutMs: 40 });
    expect(await queue.find(database.db, id)).toMatchObject({ state: 'due' });
    await end();
    expect(await queue.waitFor(database.db, resize, id)).toMatchObject({ state: 'completed' });
  });

  test('an aborted signal ends the wait with its reason, before and during it, and looks no more', async () => {
    const id = await enqueue();
    const db = watched(() => undefined);
    const reason = new Error('left');
    const before = queue.waitFor(db, resize, id, { signal: AbortSignal.abort(reason) });
    await expect(before).rejects.toBe(reason);
    expect(db.texts).toEqual([]);
    const controller = new AbortController();
    const during = queue.waitFor(db, resize, id, { signal: controller.signal });
    await until(() => db.texts.length > 0);
    controller.abort(reason);
    await expect(during).rejects.toBe(reason);
    const asked = db.texts.length;
    // Another job's wait through the same database no longer asks for the first.
    const other = await enqueue();
    await end();
    await end();
    await queue.waitFor(db, resize, other);
    expect(db.texts.length).toBeGreaterThan(asked);
    expect(await queue.waitFor(db, resize, id)).toMatchObject({ id });
  });

  test('an unknown job is gone at once, and so is one that leaves no result', async () => {
    const unknown = queue.waitFor(database.db, resize, 999_999_999);
    await expect(unknown).rejects.toThrow(JobGoneError);
    await expect(unknown).rejects.toMatchObject({ reason: 'unknown', jobId: 999_999_999 });

    const { id } = await queue.enqueue(database.db, forget);
    const db = watched(() => undefined);
    const waiting = queue.waitFor(db, forget, id);
    waiting.catch(() => undefined);
    await until(() => db.texts.length > 1);
    await endJob(database.db, { kind: 'forget', keepResult: false });
    await expect(waiting).rejects.toThrow(/has ended without a result/);
    await expect(waiting).rejects.toMatchObject({ reason: 'not-kept' });
  });

  test('a job whose transaction is still open is not there yet, instead of never', async () => {
    await database.db.transaction(async (tx) => {
      const { id } = await queue.enqueue(tx, resize, { url: 'a' });
      const waiting = queue.waitFor(database.db, resize, id);
      await expect(waiting).rejects.toThrow(/the transaction that enqueued it has not committed/);
    });
  });

  test.each(['read committed', 'repeatable read'] as const)(
    'inside a transaction (%s) it is refused, with the reason',
    async (isolationLevel) => {
      await database.db.transaction(
        async (tx) => {
          const { id } = await queue.enqueue(tx, resize, { url: 'a' });
          await expect(queue.waitFor(tx, resize, id)).rejects.toThrow(/starts after its commit/);
          await expect(queue.run(tx, resize, { url: 'b' })).rejects.toThrow(TypeError);
          await tx.transaction(async (savepoint) => {
            await expect(queue.waitFor(savepoint, resize, id)).rejects.toThrow(TypeError);
          });
          // Nothing was sent by the refused ones: only the first job is there.
          expect((await queue.list(tx)).jobs).toHaveLength(1);
        },
        { isolationLevel },
      );
    },
  );

  test.each(['lock_timeout', 'statement_timeout'])(
    'a table that a migration locks for longer than %s delays the answer',
    async (setting) => {
      const id = await enqueue();
      // The driver's own first statement would be cut short, too, where the machine is slow.
      const client = postgres(database.url, { max: 1, fetch_types: false, connection: { [setting]: 50 } });
      onTestFinished(() => client.end());
      const [migration] = await database.connect();
      const given = gate();
      const locked = gate();
      const migrating = migration?.db.transaction(async (tx) => {
        await tx.execute(sql`lock table queue_jobs in access exclusive mode`);
        locked.open();
        await given.opened;
      });
      await locked.opened;
      let looked = 0;
      const db = intercepted(drizzle({ client }), async () => {
        looked++;
      });
      const waiting = queue.waitFor(db, resize, id);
      await Promise.race([waiting, until(() => looked >= 2)]).finally(given.open);
      await migrating;
      await end();
      expect(await waiting).toMatchObject({ id, state: 'completed' });
    },
  );

  test('has the time that a large output takes, whatever else is waited for', async () => {
    const id = await enqueue();
    await end();
    // Longer than a look is waited for at first.
    const db = watched((text, attempt) => {
      const reads = looks([text]).length === 0;
      return reads && asked(db.params[attempt - 1]).includes(id) ? setTimeout(6_000) : undefined;
    });
    let hasEnded = false;
    const large = queue.waitFor(db, resize, id, { timeoutMs: 25_000 }).finally(() => {
      hasEnded = true;
    });
    const waitForAnother = async (timeoutMs: number) => {
      const other = await enqueue();
      const waiting = queue.waitFor(db, resize, other, { timeoutMs });
      await end();
      return await waiting;
    };
    await until(() => db.texts.length === 2);
    await waitForAnother(10_000);
    while (!hasEnded) await waitForAnother(3_000);
    expect(await large).toMatchObject({ id });
  }, 30_000);

  test('reads fewer jobs at once where the server refuses so many', async () => {
    const ids: number[] = await addJobs(
      database.client,
      Array.from({ length: 1_000 }, () => ({ kind: 'resize' })),
    );
    await endAll();
    let most = 0;
    const db = watched((text, attempt) => {
      if (looks([text]).length > 0) return;
      const count = asked(db.params[attempt - 1]).length;
      if (count > 300) throw Object.assign(new Error('statement timeout'), { code: '57014' });
      most = Math.max(most, count);
    });
    const records = await Promise.all(ids.map((id) => queue.waitFor(db, resize, id, { timeoutMs: 20_000 })));
    expect(records.map(({ id }) => id)).toEqual(ids);
    expect(most).toBe(250);
  }, 30_000);

  test('does not blame a lost connection for the time of a job that is alive', async () => {
    const id = await enqueue();
    const db = watched((_, attempt) => {
      if (attempt === 1) throw Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' });
    });
    const timedOut = await queue
      .waitFor(db, resize, id, { timeoutMs: 2_000 })
      .catch((error: unknown) => error);
    expect(looks(db.texts).length).toBeGreaterThan(1);
    expect(timedOut).toBeInstanceOf(WaitTimeoutError);
    expect(timedOut instanceof WaitTimeoutError && timedOut.cause).toBeUndefined();
  });

  test('a lost connection delays the answer; the next look brings it', async () => {
    const [connection] = await database.connect();
    if (connection === undefined) throw new Error('no connection');
    const id = await enqueue();
    const [{ pid } = { pid: 0 }] = await connection.client<{ pid: number }[]>`select pg_backend_pid() as pid`;
    const waiting = queue.waitFor(connection.db, resize, id);
    await database.client`select pg_terminate_backend(${pid}::int)`;
    await end();
    expect(await waiting).toMatchObject({ id, state: 'completed' });
  });

  test('a look without an answer is given up: who waits, and who comes later, has the next one', async () => {
    const id = await enqueue();
    const isSilent = (attempt: number) => attempt === 1;
    const db = watched(async (_, attempt) => {
      if (isSilent(attempt)) await new Promise(() => {});
    });
    const waiting = queue.waitFor(db, resize, id, { timeoutMs: 40_000 });
    await until(() => looks(db.texts).length === 1);
    await end();
    expect(await queue.waitFor(db, resize, id, { timeoutMs: 40_000 })).toMatchObject({ id });
    expect(await waiting).toMatchObject({ id, state: 'completed' });
  });

  test('a database that cannot be reached: the time ends, and the error says why', async () => {
    const id = await enqueue();
    const lost = Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' });
    const db = watched(() => {
      throw lost;
    });
    const waiting = queue.waitFor(db, resize, id, { timeoutMs: 200 });
    await expect(waiting).rejects.toThrow(WaitTimeoutError);
    await expect(waiting).rejects.toMatchObject({ cause: lost });
  });

  test('an error that will not pass ends the wait of those it concerns', async () => {
    const id = await enqueue();
    const db = watched(() => database.client`select 1 / 0`);
    await expect(queue.waitFor(db, resize, id)).rejects.toMatchObject({ code: '22012' });
  });

  test('a job of another kind is an error that names both', async () => {
    const id = await enqueue();
    await end();
    await expect(queue.waitFor(database.db, forget, id)).rejects.toThrow(/is a 'resize', not a 'forget'/);
  });

  test('thousands share their statements', async () => {
    const count = 2_500;
    const kinds = Array.from({ length: count }, () => ({ kind: 'resize' }));
    const ids: number[] = await addJobs(database.client, kinds);
    const db = watched(() => undefined);
    const waiting = Promise.all(ids.map((id) => queue.waitFor(db, resize, id)));
    await until(() => looks(db.texts).length >= 3);
    const ended = await end();
    expect(ended).toHaveLength(1);
    await endAll();
    const records = await waiting;
    expect(records.map(({ id }) => id)).toEqual(ids);
    // Three statements reach all of them; a statement for each would be thousands.
    expect(db.texts.length).toBeLessThan(count / 10);
    // Nobody asks for them any more: whoever waits later is asked for alone.
    const asked = db.params.length;
    const later = await enqueue();
    const waitingAlone = queue.waitFor(db, resize, later);
    await until(() => db.params.length >= asked + 5);
    const since = db.params.slice(asked);
    expect(since).toEqual(since.map(() => [`{${later}}`]));
    await end();
    await waitingAlone;
  });

  test('a long wait is asked for less and less often', async () => {
    const id = await enqueue();
    const db = watched(() => undefined);
    await expect(queue.waitFor(db, resize, id, { timeoutMs: 1_500 })).rejects.toThrow(WaitTimeoutError);
    // At 0, 25, 75, 175, 375, 875 and 1,375 ms, give or take a quarter.
    expect(db.texts.length).toBeLessThanOrEqual(10);
    expect(db.texts.length).toBeGreaterThanOrEqual(3);
  });
});

describe('run', () => {
  const workers: { stop(): Promise<void> }[] = [];
  afterEach(async () => {
    for (const worker of workers.splice(0)) await worker.stop();
  });

  function work(handler: (url: string) => unknown): void {
    const worker = createWorker(database.db, {
      queue,
      handlers: [handle(resize, ({ payload }) => handler(payload.url))],
    });
    workers.push(worker);
    worker.start();
  }

  test('returns what the handler returned, as it is stored', async () => {
    work((url) => ({ url, at: new Date(0) }));
    expect(await queue.run(database.db, resize, { url: 'a' })).toEqual({
      url: 'a',
      at: '1970-01-01T00:00:00.000Z',
    });
  });

  test('throws what went wrong, with the stored error and the record', async () => {
    work(() => {
      throw new NonRetryableError('too large');
    });
    const failed = queue.run(database.db, resize, { url: 'a' });
    await expect(failed).rejects.toThrow(JobFailedError);
    await expect(failed).rejects.toThrow(QueueError);
    await expect(failed).rejects.toThrow(/^Job \d+ \('resize'\) was discarded: too large$/);
    await expect(failed).rejects.toMatchObject({
      kind: 'resize',
      error: { name: 'NonRetryableError', attempt: 1 },
      record: { state: 'discarded', payload: { url: 'a' } },
    });
  });

  test('waits for the job that has the key', async () => {
    const first = await queue.enqueue(database.db, resize, { url: 'first' }, { uniqueKey: 'u' });
    const second = queue.run(database.db, resize, { url: 'second' }, { uniqueKey: 'u' });
    work((url) => url);
    expect(await second).toBe('first');
    expect((await queue.list(database.db)).jobs.map(({ id }) => id)).toEqual([first.id]);
  });

  test('after the time is over the job goes on, and its id is in the error', async () => {
    const late = await queue
      .run(database.db, resize, { url: 'a' }, { timeoutMs: 30 })
      .catch((error) => error);
    if (!(late instanceof WaitTimeoutError)) throw new Error('it has ended');
    expect(late.message).toContain('If a worker serves its queue, the job continues: wait again by its id');
    work((url) => url);
    expect(await queue.waitFor(database.db, resize, late.jobId)).toMatchObject({ output: 'a' });
  });

  test('a cancelled job is an error, too; an aborted signal before the enqueue enqueues nothing', async () => {
    const cancelled = queue.run(database.db, resize, { url: 'a' });
    cancelled.catch(() => undefined);
    const [job] = await until(async () => {
      const { jobs } = await queue.list(database.db);
      return jobs.length > 0 ? jobs : undefined;
    }).then((jobs) => jobs ?? []);
    await queue.cancel(database.db, Number(job?.id), 'enough');
    await expect(cancelled).rejects.toThrow(/was cancelled: enough/);
    const reason = new Error('left');
    const aborted = queue.run(database.db, resize, { url: 'b' }, { signal: AbortSignal.abort(reason) });
    await expect(aborted).rejects.toBe(reason);
    expect((await queue.list(database.db)).jobs).toHaveLength(1);
  });

  test.each([
    ['throttle', { throttle: { key: 'k', perMs: 1_000 } }],
    ['unique: { forMs }', { uniqueKey: 'k', unique: { forMs: 1_000 } }],
  ])('%s is refused: there may be no job', async (_, options) => {
    // @ts-expect-error its answer may have no id
    const refused = queue.run(database.db, resize, { url: 'a' }, options);
    await expect(refused).rejects.toThrow(/there may be no job/);
    expect((await queue.list(database.db)).jobs).toEqual([]);
  });

  test('a job whose result is not kept is refused', async () => {
    await expect(queue.run(database.db, forget)).rejects.toThrow(/keepResult: false/);
    expect((await queue.list(database.db)).jobs).toEqual([]);
  });
});

describe('bad input is refused before anything is sent', () => {
  const never = untouched();

  test.each<[what: string, options: object | null, error: typeof Error, message: RegExp]>([
    ['null', null, TypeError, /options must be an object/],
    ['timeoutMs 0', { timeoutMs: 0 }, RangeError, /timeoutMs .* from 1 to 2147483647, got 0/],
    ['an endless timeoutMs', { timeoutMs: Number.POSITIVE_INFINITY }, RangeError, /timeoutMs/],
    ['a text as timeoutMs', { timeoutMs: '5' }, RangeError, /got '5'/],
    ['a signal that is none', { signal: {} }, TypeError, /signal must be an AbortSignal/],
    ['a misspelt option', { timeout: 5 }, TypeError, /did you mean timeoutMs\?/],
  ])('%s', async (_, options, error, message) => {
    // @ts-expect-error wrong on purpose
    const refused = queue.waitFor(never, resize, 1, options);
    await expect(refused).rejects.toThrow(message);
    await expect(refused).rejects.toThrow(error);
  });

  test('ids, definitions and databases', async () => {
    for (const id of [0, -1, 1.5, Number.NaN, '1', null, undefined, 1n]) {
      // @ts-expect-error wrong on purpose
      await expect(queue.waitFor(never, resize, id)).rejects.toThrow(/id must be a job id/);
    }
    // @ts-expect-error wrong on purpose
    await expect(queue.waitFor(never, 'resize', 1)).rejects.toThrow(/waitFor/);
    // @ts-expect-error wrong on purpose
    await expect(queue.waitFor(undefined, resize, 1)).rejects.toThrow(/needs a Drizzle database/);
    // @ts-expect-error wrong on purpose
    await expect(queue.run(never, 'resize', {})).rejects.toThrow(/run/);
    await expect(queue.run(never, resize, { url: 'a' }, { timeoutMs: -1 })).rejects.toThrow(
      /^run: timeoutMs/,
    );
  });
});
