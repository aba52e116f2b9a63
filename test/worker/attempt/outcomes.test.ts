import {
  cancel,
  createQueue,
  defineJob,
  drain,
  fixedBackoff,
  type Handler,
  handle,
  type JobRecord,
  NonRetryableError,
  runNext,
  snooze,
  unvalidated,
} from 'drizzle-queue';
import { queueJobs } from 'drizzle-queue/schema';
import { describe, expect, onTestFinished, test } from 'vitest';
import { z } from 'zod';
import { useTestDatabase } from '../../support/test-database.ts';
import { until } from '../../support/until.ts';

const database = useTestDatabase();
const queue = createQueue();
const double = defineJob('double', {
  payload: z.object({ n: z.number() }),
  output: z.object({ doubled: z.number() }),
  maxAttempts: 2,
  backoff: fixedBackoff(3_600_000),
});

/** Runs everything that is due, and answers what became of one job. */
async function work(id: number, ...handlers: Handler[]): Promise<JobRecord> {
  await drain(database.db, { queue, handlers, deadlineMs: 10_000 });
  const record = await queue.find(database.db, id);
  if (record === undefined) throw new Error(`job ${id} is gone`);
  return record;
}

/** As if the backoff had passed. */
async function makeDue(): Promise<void> {
  await database.db.update(queueJobs).set({ runAt: new Date(Date.now() - 1_000) });
}

describe('how an attempt ends', () => {
  test('the same where something else has taken the place of Promise, as some tracers do', async () => {
    const { id } = await queue.enqueue(database.db, double, { n: 21 });
    const before = globalThis.Promise;
    const handler = handle(double, ({ payload }) => {
      // What an async function returns is none of these.
      globalThis.Promise = class extends before<never> {} as typeof before;
      setTimeout(() => (globalThis.Promise = before));
      return { doubled: payload.n * 2 };
    });
    try {
      expect(await work(id, handler)).toMatchObject({ state: 'completed', output: { doubled: 42 } });
    } finally {
      globalThis.Promise = before;
    }
  });

  test('a returned output is validated, stored and found', async () => {
    const { id } = await queue.enqueue(database.db, double, { n: 21 });
    const record = await work(
      id,
      handle(double, async ({ payload, job }) => {
        expect(job).toMatchObject({ id, kind: 'double', attempt: 1, maxAttempts: 2, queue: 'default' });
        return { doubled: payload.n * 2 };
      }),
    );
    expect(record).toMatchObject({ state: 'completed', output: { doubled: 42 }, attempt: 1, errors: [] });
  });

  test('a throw is a failed attempt, retried after the backoff; the last one discards', async () => {
    const { id } = await queue.enqueue(database.db, double, { n: 1 });
    const failing = handle(double, async ({ job }) => {
      throw new TypeError(`attempt ${job.attempt} went wrong`, { cause: new Error('the provider is down') });
    });
    const waiting = await work(id, failing);
    expect(waiting).toMatchObject({
      state: 'scheduled',
      attempt: 1,
      errors: [{ attempt: 1, name: 'TypeError', message: expect.stringContaining('the provider is down') }],
    });
    await makeDue();
    const discarded = await work(id, failing);
    expect(discarded).toMatchObject({ state: 'discarded', attempt: 2 });
    expect(discarded.errors.map(({ attempt }) => attempt)).toEqual([1, 2]);
    expect(discarded.errors[1]?.stack).toContain('outcomes.test.ts');
    expect(new Date(discarded.errors[1]?.at ?? '').getTime()).not.toBeNaN();
  });

  test.each([1e300, Number.POSITIVE_INFINITY])(
    'a backoff of %o ms is a year, of which its kind is warned once',
    async (delayMs) => {
      const warnings: string[] = [];
      const listener = ({ message }: Error) => warnings.push(message);
      process.on('warning', listener);
      onTestFinished(() => void process.off('warning', listener));
      const kind = `waits ${delayMs}`;
      const patient = defineJob(kind, { maxAttempts: 3, backoff: () => delayMs });
      const other = defineJob(`${kind} too`, { maxAttempts: 3, backoff: () => delayMs });
      const jobs = [patient, patient, other];
      const ids = [];
      for (const job of jobs) ids.push((await queue.enqueue(database.db, job)).id);
      const fail = () => {
        throw new Error('no');
      };
      for (const id of ids) {
        const { runAt } = await work(id, handle(patient, fail), handle(other, fail));
        const inDays = (Number(runAt) - Date.now()) / 86_400_000;
        expect(inDays).toBeGreaterThan(364);
        expect(inDays).toBeLessThan(367);
      }
      await until(() => warnings.length >= 2);
      const about = (name: string) => `The backoff of '${name}' returned ${delayMs} milliseconds`;
      expect(warnings).toEqual([
        expect.stringContaining(about(kind)),
        expect.stringContaining(about(`${kind} too`)),
      ]);
    },
  );

  test('a backoff that is async and rejects is replaced by the default, and harms nothing', async () => {
    const backoff = (async () => await Promise.reject(new Error('in the backoff'))) as never;
    const job = defineJob('async backoff', { maxAttempts: 2, backoff });
    const { id } = await queue.enqueue(database.db, job);
    const fail = handle(job, () => {
      throw new Error('no');
    });
    const rejections: unknown[] = [];
    const listener = (reason: unknown) => rejections.push(reason);
    process.on('unhandledRejection', listener);
    onTestFinished(() => void process.off('unhandledRejection', listener));
    expect((await work(id, fail)).errors[0]).toMatchObject({ message: 'no' });
    expect(rejections).toEqual([]);
  });

  test('a NonRetryableError discards at once, attempts left or not', async () => {
    const { id } = await queue.enqueue(database.db, double, { n: 1 });
    const record = await work(
      id,
      handle(double, async () => {
        throw new NonRetryableError('no such mailbox');
      }),
    );
    expect(record).toMatchObject({
      state: 'discarded',
      attempt: 1,
      errors: [{ name: 'NonRetryableError', message: 'no such mailbox' }],
    });
  });

  test('anything may be thrown', async () => {
    const { id } = await queue.enqueue(database.db, double, { n: 1 });
    const record = await work(
      id,
      handle(double, () => {
        throw 'a text with a \0 NUL';
      }),
    );
    expect(record.errors).toMatchObject([
      { name: 'NonError', message: expect.stringContaining('a text with a') },
    ]);
  });

  test('snooze gives the attempt back, any number of times', async () => {
    const { id } = await queue.enqueue(database.db, double, { n: 1 });
    let runs = 0;
    const record = await work(
      id,
      handle(double, async ({ payload }) => (++runs < 5 ? snooze(0) : { doubled: payload.n })),
    );
    expect(runs).toBe(5);
    expect(record).toMatchObject({ state: 'completed', attempt: 1, errors: [] });
  });

  test('cancel ends the job with its reason', async () => {
    const { id } = await queue.enqueue(database.db, double, { n: 1 });
    const record = await work(
      id,
      handle(double, async () => cancel('the order was withdrawn')),
    );
    expect(record).toMatchObject({
      state: 'cancelled',
      errors: [{ name: 'Cancelled', message: 'the order was withdrawn' }],
    });
  });

  test('an output that the schema refuses is a failed attempt', async () => {
    const { id } = await queue.enqueue(database.db, double, { n: 1 });
    // What TypeScript refuses, JavaScript does.
    const wrong = handle(double, async () => JSON.parse('{"doubled":"two"}'));
    expect(await work(id, wrong)).toMatchObject({
      state: 'scheduled',
      errors: [{ name: 'InvalidOutputError', message: expect.stringContaining('doubled') }],
    });
  });

  test('a payload that the definition no longer takes is a failed attempt, and the handler does not run', async () => {
    const before = defineJob('double', { payload: unvalidated<{ m: string }>(), maxAttempts: 2 });
    const { id } = await queue.enqueue(database.db, before, { m: 'old' });
    let ran = false;
    const record = await work(
      id,
      handle(double, async () => {
        ran = true;
        return { doubled: 0 };
      }),
    );
    expect(ran).toBe(false);
    expect(record.errors).toMatchObject([{ name: 'InvalidPayloadError' }]);
  });

  test('keepResult: false leaves no row of a completed job, and keeps a discarded one', async () => {
    const quiet = defineJob('quiet', { payload: unvalidated<boolean>(), keepResult: false, maxAttempts: 1 });
    const [good, bad] = await queue.enqueueMany(database.db, quiet, [{ payload: true }, { payload: false }]);
    await drain(database.db, {
      queue,
      deadlineMs: 10_000,
      handlers: [
        handle(quiet, async ({ payload }) => {
          if (!payload) throw new Error('bad');
        }),
      ],
    });
    expect(await queue.find(database.db, good?.id ?? 0)).toBeUndefined();
    expect(await queue.find(database.db, bad?.id ?? 0)).toMatchObject({ state: 'discarded' });
  });

  test("keepResult: 'outcome' keeps all but the payload of a completed job, also of complete(tx)", async () => {
    const brief = defineJob('brief', {
      payload: unvalidated<number>(),
      keepResult: 'outcome',
      maxAttempts: 1,
    });
    const kept = defineJob('kept', { payload: unvalidated<number>() });
    const ids = await queue.enqueueMany(
      database.db,
      brief,
      [1, 2, 3].map((payload) => ({ payload })),
    );
    const whole = await queue.enqueue(database.db, kept, 4);
    await drain(database.db, {
      queue,
      deadlineMs: 10_000,
      handlers: [
        handle(brief, async ({ payload, complete }) => {
          if (payload === 1) throw new Error('bad');
          if (payload === 2) return payload;
          await database.db.transaction((tx) => complete(tx, payload));
        }),
        handle(kept, ({ payload }) => payload),
      ],
    });
    const found = await Promise.all([...ids, whole].map(({ id }) => queue.find(database.db, id ?? 0)));
    expect(found).toMatchObject([
      { state: 'discarded', payload: 1, errors: [{ message: 'bad' }] },
      { state: 'completed', payload: undefined, output: 2, errors: [] },
      { state: 'completed', payload: undefined, output: 3 },
      { state: 'completed', payload: 4, output: 4 },
    ]);
    const { id } = await queue.enqueue(database.db, brief, 5);
    await runNext(database.db, { queue, handlers: [handle(brief, ({ payload }) => payload)] });
    expect(await queue.find(database.db, id)).toMatchObject({ payload: undefined, output: 5 });
  });

  test('an outcome that the database refuses is a failed attempt, and harms no other of its batch', async () => {
    await database.client`
      alter table queue_results add constraint no_thirteen check (output->>'doubled' is distinct from '26')`;
    const enqueued = await queue.enqueueMany(
      database.db,
      double,
      [11, 12, 13, 14].map((n) => ({ payload: { n } })),
    );
    await drain(database.db, {
      queue,
      deadlineMs: 10_000,
      handlers: [handle(double, async ({ payload }) => ({ doubled: payload.n * 2 }))],
    });
    const states = await Promise.all(
      enqueued.map(async ({ id }) => (await queue.find(database.db, id))?.state),
    );
    expect(states).toEqual(['completed', 'completed', 'scheduled', 'completed']);
    const refused = await queue.find(database.db, enqueued[2]?.id ?? 0);
    expect(refused?.errors[0]?.message).toContain('no_thirteen');
    expect(JSON.stringify(refused?.errors)).not.toContain('Failed query');
  });

  test('a job whose workers all died is discarded with that reason, without another run', async () => {
    const { id } = await queue.enqueue(database.db, double, { n: 1 });
    // Claimed twice (its maxAttempts) by workers that are no more.
    await database.db.update(queueJobs).set({ attempt: 2, workerId: 999_999, claimedAt: new Date() });
    let ran = false;
    const record = await work(
      id,
      handle(double, async () => {
        ran = true;
        return { doubled: 0 };
      }),
    );
    expect(ran).toBe(false);
    expect(record).toMatchObject({ state: 'discarded', errors: [{ name: 'WorkerLostError' }] });
  });
});
