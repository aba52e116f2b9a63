import {
  ChildFailedError,
  createQueue,
  createWorker,
  defineJob,
  defineSignal,
  drain,
  fixedBackoff,
  handlersFor,
  NonRetryableError,
  runNext,
  unvalidated,
  type Worker,
  workflowsIn,
} from 'drizzle-queue';
import * as workflowTables from 'drizzle-queue/schema/workflows';
import { drainIn, inTransaction } from 'drizzle-queue/testing';
import { afterEach, beforeAll, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { atFaultPoints } from '../../src/core/sql/fault-point.ts';
import { clearTables, tables } from '../queries/support/jobs.ts';
import { addWorkflowTables, clearWorkflowTables } from '../support/control-tables.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';

const database = useTestDatabase({ max: 10 });
const queue = createQueue({ tables, workflows: workflowsIn(workflowTables) });
const { handle } = handlersFor<typeof database.db, typeof queue>();
const parent = defineJob('parent', {
  queue: 'q',
  payload: unvalidated<number>(),
  output: unvalidated<unknown>(),
  backoff: fixedBackoff(0),
});
const child = defineJob('child', {
  queue: 'children',
  payload: unvalidated<number>(),
  output: unvalidated<number>(),
  maxAttempts: 1,
});
const approval = defineSignal('approval', unvalidated<{ by: string }>());
const stop = defineSignal('stop');
const FAR_MS = 3_600_000;

beforeAll(() => addWorkflowTables(database));
beforeEach(async () => {
  await clearTables(database.client);
  await clearWorkflowTables(database);
  gates.clear();
});
afterEach(() => atFaultPoints());

type Run = Parameters<typeof handle<typeof parent>>[1];

/** What lets the children end that wait for it, by their payloads; one of 13 is discarded then. */
const gates = new Map<number, () => void>();
const gated = handle(child, async ({ payload, signal }) => {
  await new Promise<void>((resolve, reject) => {
    gates.set(payload, resolve);
    signal.addEventListener('abort', () => reject(signal.reason));
  });
  if (payload === 13) throw new NonRetryableError('thirteen');
  return payload * 10;
});
/** Lets a child end, once it has begun. */
async function open(payload: number): Promise<void> {
  await until(async () => gates.has(payload));
  gates.get(payload)?.();
}
const quick = handle(child, async ({ payload }) => payload * 10);

async function start(run: Run, handlers = [gated]): Promise<Worker> {
  const worker = createWorker(database.db, {
    queue,
    handlers: [handle(parent, run), ...handlers],
    queues: { q: { concurrency: 50 }, children: { concurrency: 50 } },
    log: false,
  });
  onTestFinished(() => worker.stop());
  await worker.start();
  return worker;
}

const enqueue = async (payload = 1) => (await queue.enqueue(database.db, parent, payload)).id;
const stateOf = async (id: number) => (await queue.find(database.db, id))?.state;
/** A job that waits for a time at most is `scheduled`. */
const waits = (id: number) => until(async () => ['waiting', 'scheduled'].includes(String(await stateOf(id))));
const send = (id: number, by = 'Ada') => queue.workflows.signal(database.db, { id }, approval, { by });

async function recordOf(id: number) {
  return await queue.waitFor(database.db, parent, id, { timeoutMs: 30_000 });
}
async function outputOf(id: number): Promise<unknown> {
  const record = await recordOf(id);
  return record.state === 'completed' ? record.output : record;
}

describe('the first of several', () => {
  test('is a signal: the child goes on, and the job held nothing meanwhile', async () => {
    let runs = 0;
    await start(async ({ step }) => {
      runs++;
      const one = await step.enqueue('one', child, 4);
      const first = await step.first('decision', {
        approved: approval,
        made: one,
        late: { delayMs: FAR_MS },
      });
      return [first, await step.waitForJob(one)];
    });
    const id = await enqueue();
    await waits(id);
    await send(id);
    await until(async () =>
      (await queue.workflows.steps(database.db, id)).some(({ name }) => name === 'one: end'),
    );
    await waits(id);
    await open(4);
    expect(await outputOf(id)).toEqual([{ key: 'approved', value: { by: 'Ada' } }, 40]);
    expect(runs).toBe(3);
    expect((await queue.find(database.db, id))?.attempt).toBe(1);
    expect(await queue.workflows.steps(database.db, id)).toMatchObject([
      { name: 'one', kind: 'enqueue' },
      { name: 'decision', kind: 'first', signal: 'approval', output: { key: 'approved' } },
      { name: 'one: end', kind: 'wait', output: 40 },
    ]);
  });

  test('is a child: a signal that comes later goes to the next wait for it', async () => {
    await start(async ({ step }) => {
      const one = await step.enqueue('one', child, 4);
      const first = await step.first('decision', { approved: approval, made: one });
      return [first, await step.waitForSignal(approval)];
    });
    const id = await enqueue();
    await waits(id);
    await open(4);
    const steps = () => queue.workflows.steps(database.db, id);
    await until(async () =>
      (await steps()).some(({ kind, endedAt }) => kind === 'first' && endedAt !== null),
    );
    await send(id);
    expect(await outputOf(id)).toEqual([{ key: 'made', value: 40 }, { by: 'Ada' }]);
  });

  test('is a time: by the database, from the first try, and the earliest of two', async () => {
    await start(async ({ step }) => {
      const reminded = await step.first('reminder', {
        approved: approval,
        deadline: { until: new Date(Date.now() + FAR_MS) },
        reminder: { delayMs: 200 },
      });
      const over = await step.first('deadline', {
        approved: approval,
        reminder: { delayMs: FAR_MS },
        deadline: { until: new Date(0) },
      });
      return [reminded, over, await step.waitForSignal(approval)];
    });
    const id = await enqueue();
    await until(async () =>
      (await queue.workflows.steps(database.db, id)).some(({ name }) => name === 'approval'),
    );
    await send(id);
    expect(await outputOf(id)).toEqual([{ key: 'reminder' }, { key: 'deadline' }, { by: 'Ada' }]);
  });

  test('is a time that has passed by the database, however slow the clock of the process is', async () => {
    const now = Date.now();
    vi.useFakeTimers({ toFake: ['Date'], now: now - 2 * FAR_MS });
    onTestFinished(() => void vi.useRealTimers());
    await start(
      async ({ step }) =>
        await step.first('decision', {
          slow: { delayMs: FAR_MS },
          far: { until: new Date(now + FAR_MS) },
          passed: { until: new Date(now - FAR_MS) },
        }),
    );
    expect(await outputOf(await enqueue())).toEqual({ key: 'passed' });
  });

  test('is a date that is another one in each run, and not a delay that is not over', async () => {
    const run: Run = async ({ step }) => {
      const reminder = { until: new Date(Date.now() + 200) };
      const soon = await step.first('soon', { late: { delayMs: FAR_MS }, reminder });
      const far = { until: new Date(Date.now() + FAR_MS) };
      return [soon, await step.first('later', { far, late: { delayMs: 200 } })];
    };
    await start(run);
    expect(await outputOf(await enqueue())).toEqual([{ key: 'reminder' }, { key: 'late' }]);
  });

  test('is a delay that is longer in the next run, and not a date that is not over', async () => {
    let runs = 0;
    await start(async ({ step }) => {
      const morning = { delayMs: ++runs === 1 ? 200 : FAR_MS };
      return await step.first('decision', {
        expires: { until: new Date(Date.now() + 20 * FAR_MS) },
        morning,
      });
    });
    expect(await outputOf(await enqueue())).toEqual({ key: 'morning' });
  });

  test('is a date that is another one in each run, and not another date that is not over', async () => {
    let end: { readonly until: Date } | undefined;
    await start(async ({ step }) => {
      end ??= { until: new Date(Date.now() + 3_000) };
      const reminder = { until: new Date(Date.now() + 2_000) };
      return await step.first('decision', { end, reminder });
    });
    expect(await outputOf(await enqueue())).toEqual({ key: 'reminder' });
  });

  test('is a date that a test makes come sooner, and not a delay that is not over', async () => {
    const date = { until: new Date(Date.now() + FAR_MS) };
    const run = handle(parent, async ({ step, payload }) => {
      return await step.first('decision', { late: { delayMs: payload * FAR_MS }, date });
    });
    await inTransaction(database.db, async (tx) => {
      const ids = [await queue.enqueue(tx, parent, 2), await queue.enqueue(tx, parent, 0.5)];
      await drainIn(tx, { queue, handlers: [run], until: { hours: 3 } });
      expect(await queue.find(tx, Number(ids[0]?.id))).toMatchObject({ output: { key: 'date' } });
      expect(await queue.find(tx, Number(ids[1]?.id))).toMatchObject({ output: { key: 'late' } });
    });
  });

  test('is the one that stands first, where several are there already', async () => {
    await start(
      async ({ step, payload, job }) => {
        const one = await step.enqueue('one', child, 4);
        await step.run('both are there', async () => {
          await until(async () => {
            const [there] = await database.client`
              select from queue_batches, queue_mailboxes as m
              where id = ${one.batchId} and ended_at is not null and m.job_id = ${job.id}`;
            return there !== undefined;
          });
        });
        const sources = payload === 1 ? { made: one, approved: approval } : { approved: approval, made: one };
        return await step.first('decision', sources);
      },
      [quick],
    );
    const ids = [await enqueue(1), await enqueue(2)];
    const sent = await Promise.all(ids.map((id) => send(id)));
    expect(sent).toEqual(['sent', 'sent']);
    expect(await outputOf(ids[0] ?? 0)).toEqual({ key: 'made', value: 40 });
    expect(await outputOf(ids[1] ?? 0)).toEqual({ key: 'approved', value: { by: 'Ada' } });
  });

  test('stays the same in each later run, whatever has come meanwhile', async () => {
    let runs = 0;
    await start(async ({ step, job }) => {
      const first = await step.first('decision', { stopped: stop, approved: approval });
      if (++runs < 4) {
        await queue.workflows.signal(database.db, { id: job.id }, stop);
        throw new Error('again');
      }
      return first;
    });
    const id = await enqueue();
    await send(id);
    expect(await outputOf(id)).toEqual({ key: 'approved', value: { by: 'Ada' } });
    expect(runs).toBe(4);
  });

  test('of one signal twice takes each once, in order', async () => {
    await start(async ({ step }) => [
      await step.first('one', { approved: approval, late: { delayMs: FAR_MS } }),
      await step.first('two', { approved: approval, stopped: stop }),
      await step.waitForSignal(approval),
    ]);
    const id = await enqueue();
    for (const by of ['Ada', 'Bob', 'Cem']) await send(id, by);
    expect(await outputOf(id)).toEqual([
      { key: 'approved', value: { by: 'Ada' } },
      { key: 'approved', value: { by: 'Bob' } },
      { by: 'Cem' },
    ]);
  });

  test('cancels the other children where that is wanted, in the same commit', async () => {
    await start(async ({ step }) => {
      const [one, two] = [await step.enqueue('one', child, 1), await step.enqueue('two', child, 2)];
      const first = await step.first('decision', { one, two }, { cancelRest: true });
      return [first, one.id, two.id];
    });
    const id = await enqueue();
    await waits(id);
    await until(async () => gates.size === 2);
    await open(1);
    const [first, one, two] = Array.from(Object(await outputOf(id)));
    expect(first).toEqual({ key: 'one', value: 10 });
    await until(async () => (await stateOf(Number(two))) === 'cancelled');
    expect(await stateOf(Number(one))).toBe('completed');
    expect(await queue.find(database.db, Number(two))).toMatchObject({
      errors: [{ message: expect.stringContaining('came first') }],
    });
  });

  test('cancels children that a signal was faster than', async () => {
    await start(async ({ step }) => {
      const one = await step.enqueue('one', child, 1);
      const first = await step.first('decision', { one, approved: approval }, { cancelRest: true });
      return [first.key, one.id];
    });
    const id = await enqueue();
    await waits(id);
    await send(id);
    const [key, one] = Array.from(Object(await outputOf(id)));
    expect(key).toBe('approved');
    await until(async () => (await stateOf(Number(one))) === 'cancelled');
  });

  test('that is a child which fails is an error, in each later run, too', async () => {
    const caught: unknown[] = [];
    await start(async ({ step }) => {
      const one = await step.enqueue('one', child, 13);
      try {
        return await step.first('decision', { approved: approval, made: one });
      } catch (error) {
        caught.push(error);
        if (caught.length < 3) throw new Error('again');
        throw error;
      }
    });
    const id = await enqueue();
    await waits(id);
    await open(13);
    expect(await recordOf(id)).toMatchObject({
      state: 'discarded',
      errors: [{}, {}, { name: 'ChildFailedError' }],
    });
    expect(caught).toHaveLength(3);
    for (const error of caught) {
      expect(error).toBeInstanceOf(ChildFailedError);
      expect(error).toMatchObject({ kind: 'child', state: 'discarded', reason: 'thirteen' });
    }
  });

  test('is a child that was cancelled before the time was over, while no worker ran', async () => {
    const { client, db } = database;
    const run: Run = async ({ step }) => {
      const one = await step.enqueue('one', child, 1);
      return await step.first('decision', { one, late: { delayMs: FAR_MS } });
    };
    const id = await enqueue();
    const drained = () =>
      drain(db, { queue, handlers: [handle(parent, run)], deadlineMs: 60_000, log: false });
    expect(await drained()).toMatchObject({ snoozed: 1 });
    const [one] = (await queue.list(db, { queue: 'children' })).jobs;
    await queue.cancel(db, Number(one?.id), 'not needed');
    await client`update queue_steps set until = now() where until is not null`;
    await client`update queue_jobs set run_at = now()`;
    await drained();
    expect(await recordOf(id)).toMatchObject({
      state: 'discarded',
      errors: [{ name: 'ChildFailedError', message: expect.stringContaining('not needed') }],
    });
  });

  test('whose answers are lost is asked for again, and stays one', async () => {
    let lost = 0;
    atFaultPoints(async (point) => {
      if (!['signal: received', 'wait: written', 'step: recorded'].includes(point)) return;
      if (++lost % 2 === 1) throw Object.assign(new Error('lost'), { code: '08006' });
    });
    await start(async ({ step }) => {
      const one = await step.enqueue('one', child, 1);
      const first = await step.first('decision', { made: one, approved: approval }, { cancelRest: true });
      return [first, await step.first('next', { approved: approval, stopped: stop })];
    });
    const id = await enqueue();
    await waits(id);
    await send(id);
    await until(async () => (await queue.workflows.steps(database.db, id)).length > 2);
    await send(id, 'Bob');
    expect(await outputOf(id)).toEqual([
      { key: 'approved', value: { by: 'Ada' } },
      { key: 'approved', value: { by: 'Bob' } },
    ]);
    expect(lost).toBeGreaterThan(3);
  });

  test('is decided once, and no job is left waiting, where all come at the same moment', async () => {
    const JOBS = 60;
    await start(
      async ({ step, payload }) => {
        const one = await step.enqueue('one', child, payload);
        const first = await step.first('decision', {
          made: one,
          approved: approval,
          late: { delayMs: 20 + (payload % 20) },
        });
        const rest = [await step.waitForJob(one), await step.waitForSignal(approval)];
        const again = await step.first('again', { approved: approval, late: { delayMs: 0 } });
        return { key: first.key, rest, again: again.key };
      },
      [quick],
    );
    const jobs = Array.from({ length: JOBS }, (_, at) => ({ payload: at }));
    const ids = (await queue.enqueueMany(database.db, parent, jobs)).map(({ id }) => id);
    await Promise.all(ids.map((id) => send(id)));
    // For those that have taken the first one as their decision.
    await Promise.all(ids.map((id) => send(id, 'Bob')));
    const keys = new Set<string>();
    for (const [at, id] of ids.entries()) {
      const output = Object(await outputOf(id));
      const isTaken = output.key === 'approved';
      expect(output).toEqual({
        key: expect.stringMatching(/^(made|approved|late)$/),
        rest: [at * 10, { by: isTaken ? 'Bob' : 'Ada' }],
        again: isTaken ? 'late' : 'approved',
      });
      keys.add(output.key);
    }
    expect(keys.size).toBeGreaterThan(0);
  });

  test('says what it cannot wait for', async () => {
    const refusals: unknown[] = [];
    await start(async ({ step }) => {
      const refused = [
        {},
        { a: 5 },
        { a: { delayMs: -1 } },
        { a: { delayMs: 366 * 24 * FAR_MS } },
        { a: { until: new Date(Number.NaN) } },
        { a: { batchId: 1 } },
        { a: approval, b: approval },
      ];
      for (const [at, sources] of refused.entries()) {
        // What TypeScript refuses.
        await step.first(`${at}`, sources as never).catch((error) => refusals.push(error.message));
      }
      return null;
    });
    expect(await outputOf(await enqueue())).toBe(null);
    expect(refusals).toEqual([
      "step '0' has nothing to wait for",
      "step '1': a must be an object, got 5",
      expect.stringContaining("step '2': a: delayMs must be"),
      expect.stringContaining("step '3': a: delayMs must be"),
      expect.stringContaining("step '4': a: until must be"),
      expect.stringContaining('takes what step.enqueue has returned'),
      "step '6' waits for the signal 'approval' twice; once is enough",
    ]);
  });

  test('that was decided by a source which the code no longer has is an error that says so', async () => {
    let isNew = false;
    await start(async ({ step }) => {
      if (isNew) await step.first('decision', { stopped: stop });
      await step.first('decision', { approved: approval });
      isNew = true;
      throw new Error('again');
    });
    const id = await enqueue();
    await send(id);
    const messages = async () => (await queue.find(database.db, id))?.errors.map(({ message }) => message);
    await until(async () => (await messages())?.at(-1)?.includes("was decided by 'approved'"));
  });
});

describe('without a worker', () => {
  const handlers = [
    handle(parent, async ({ step }) => {
      const one = await step.enqueue('one', child, 4);
      return await step.first('decision', { approved: approval, made: one, late: { delayMs: FAR_MS } });
    }),
    quick,
  ];

  test('drain goes on until it is decided', async () => {
    const id = await enqueue();
    const result = await drain(database.db, { queue, handlers, deadlineMs: 100_000 });
    expect(result).toMatchObject({ completed: 2, empty: true });
    expect(await outputOf(id)).toEqual({ key: 'made', value: 40 });
  });

  test('runNext decides it in its transaction', async () => {
    const id = await enqueue();
    const next = () => runNext(database.db, { queue, handlers, queues: ['q'] });
    await next();
    expect(await stateOf(id)).toBe('scheduled');
    await send(id);
    await next();
    expect(await outputOf(id)).toEqual({ key: 'approved', value: { by: 'Ada' } });
  });
});
