import {
  ChildFailedError,
  createQueue,
  defineJob,
  defineSignal,
  handlersFor,
  InvalidOutputError,
  InvalidSignalError,
  isFinal,
  NonRetryableError,
  StepFailedError,
  unvalidated,
  workflowsIn,
} from 'drizzle-queue';
import { createQueueTables } from 'drizzle-queue/schema';
import * as workflowTables from 'drizzle-queue/schema/workflows';
import { createWorkflowTables } from 'drizzle-queue/schema/workflows';
import {
  createTestDatabase,
  drainIn,
  ended,
  inline,
  inTransaction,
  matchersOf,
  queueMatchers,
  runHandler,
  sent,
} from 'drizzle-queue/testing';
import { beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { addWorkflowTables } from '../support/control-tables.ts';
import { useTestDatabase } from '../support/test-database.ts';

expect.extend(queueMatchers);

const database = useTestDatabase();
const queue = createQueue({ workflows: workflowsIn(workflowTables) });
const { handle } = handlersFor<typeof database.db, typeof queue>();
const fulfil = defineJob('fulfil', {
  payload: z.object({ orderId: z.number() }),
  output: unvalidated<unknown>(),
});
const approval = defineSignal('approval', z.object({ by: z.string(), at: z.coerce.date() }));
const bare = defineSignal('bare');
const payload = { orderId: 7 };
type GivenStep = Parameters<Parameters<typeof handle<typeof fulfil>>[1]>[0]['step'];

const handler = handle(fulfil, async ({ payload, step }) => {
  const charge = await step.run('charge', ({ idempotencyKey }) => ({
    id: `ch_${payload.orderId}`,
    idempotencyKey,
  }));
  await step.sleep('cool down', 3_600_000);
  const answer = await step.waitForSignal(approval, { timeoutMs: 60_000 });
  if (answer === undefined) return 'too late';
  return { charge: charge.id, by: answer.by, year: answer.at.getUTCFullYear() };
});

describe('runHandler', () => {
  test('runs new steps in memory, passes sleeps, and hands over the signals that are given', async () => {
    const signals = [sent(approval, { by: 'Ada', at: new Date('2027-01-01') })];
    const run = await runHandler(fulfil, { payload, queue, signals }, handler);
    expect(run).toMatchObject({
      outcome: 'completed',
      output: { charge: 'ch_7', by: 'Ada', year: 2027 },
      waitsFor: [],
    });
    expect(run.steps).toEqual([
      {
        name: 'charge',
        kind: 'run',
        signal: null,
        output: { id: 'ch_7', idempotencyKey: '1:charge' },
        error: null,
        delayMs: undefined,
        until: undefined,
      },
      expect.objectContaining({ name: 'cool down', kind: 'sleep', delayMs: 3_600_000, output: undefined }),
      expect.objectContaining({
        name: 'approval',
        kind: 'signal',
        signal: 'approval',
        output: { by: 'Ada', at: '2027-01-01T00:00:00.000Z' },
      }),
    ]);
  });

  test('does not run steps that are given again, of whatever kind they are', async () => {
    const steps = {
      charge: { id: 'ch_0' },
      'cool down': undefined,
      approval: { by: 'Bob', at: '2026-01-01' },
    };
    const run = await runHandler(fulfil, { payload, queue, steps }, handler);
    expect(run).toMatchObject({ output: { charge: 'ch_0', by: 'Bob', year: 2026 }, steps: [] });
    const late = await runHandler(fulfil, { payload, queue, steps: { approval: undefined } }, handler);
    expect(late).toMatchObject({ outcome: 'completed', output: 'too late' });
  });

  test.each([0, -1])('replays steps of a job that was enqueued %d ms after the epoch', async (ms) => {
    const job = { createdAt: new Date(ms) };
    const steps = { charge: { id: 'ch_0' }, 'cool down': undefined, approval: undefined };
    const run = await runHandler(fulfil, { payload, queue, job, steps }, handler);
    expect(run).toMatchObject({ output: 'too late', steps: [] });
  });

  test('ends as waiting where a signal is not there, and says in which step', async () => {
    const run = await runHandler(fulfil, { payload, queue }, handler);
    expect(run).toMatchObject({ outcome: 'waiting', waitsFor: ['approval'], output: undefined });
    expect(run.retryInMs).toBeGreaterThan(50_000);
    expect(run.retryInMs).toBeLessThanOrEqual(60_000);
    expect(run.steps.map(({ name }) => name)).toEqual(['charge', 'cool down']);
    const endless = await runHandler(fulfil, { payload, queue }, async ({ step }) => {
      await Promise.all([step.waitForSignal(bare), step.waitForSignal(bare, { name: 'second' })]);
    });
    expect(endless).toMatchObject({
      outcome: 'waiting',
      retryInMs: undefined,
      waitsFor: ['bare', 'second'],
    });
  });

  test('gives signals of one name in the order in which they were sent', async () => {
    const signals = [sent(bare), sent(approval, { by: 'Ada', at: new Date(0) }), sent(bare)];
    const run = await runHandler(fulfil, { payload, queue, signals }, async ({ step }) => [
      await step.waitForSignal(bare),
      (await step.waitForSignal(approval)).by,
      await step.waitForSignal(bare, { name: 'again' }),
    ]);
    expect(run.output).toEqual([null, 'Ada', null]);
  });

  test('an error that is given is a step that has failed for good', async () => {
    const steps = { charge: new NonRetryableError('card declined') };
    const run = await runHandler(fulfil, { payload, queue, steps }, handler);
    expect(run).toMatchObject({ outcome: 'failed', discarded: true, error: expect.any(StepFailedError) });
    expect(run.error).toHaveProperty('error.message', 'card declined');
  });

  test('records failed tries and undos', async () => {
    const undone: string[] = [];
    const run = await runHandler(fulfil, { payload, queue }, async ({ step }) => {
      try {
        await step.run('charge', { undo: ({ id }) => void undone.push(id) }, () => ({ id: 'ch_1' }));
        await step.run('ship', { attempts: 1 }, () => {
          throw new Error('no parcels');
        });
      } catch (error) {
        if (isFinal(error)) await step.undoAll(error);
        throw error;
      }
    });
    expect(undone).toEqual(['ch_1']);
    expect(run).toMatchObject({ outcome: 'failed', discarded: true });
    expect(run.steps.map(({ name, error }) => [name, error?.message])).toEqual([
      ['charge', undefined],
      ['ship', 'no parcels'],
      ['undo', "The step 'ship' of 'fulfil' failed 1 times: no parcels [cause] Error: no parcels"],
      ['undo:charge', undefined],
    ]);
  });

  test('runs a step with a transaction on the db that is given', async () => {
    const run = async (db?: object) =>
      await runHandler(fulfil, { payload, queue, ...(db !== undefined && { db }) }, async ({ step }) => ({
        rows: await step.transaction('reserve', async (tx) => Reflect.get(tx, 'rows')),
      }));
    const db = { transaction: async (task: (tx: object) => unknown) => await task({ rows: 2 }) };
    expect((await run(db)).output).toEqual({ rows: 2 });
    expect((await run()).error).toMatchObject({
      message: 'runHandler has no database, and the handler uses its transaction: give it a db',
    });
  });

  test('an error that is given for a wait is a child that has failed', async () => {
    const child = defineJob('child', { output: unvalidated<number>() });
    const run = (steps: Record<string, unknown>) =>
      runHandler(
        fulfil,
        { payload, queue, steps },
        handle(fulfil, async ({ step }) => {
          const one = await step.enqueue('one', child);
          const many = await step.enqueueMany('many', child, [{}, {}]);
          const first = await step.first('first', { one, approval });
          return [await step.waitForJob(one), await step.all('all', many), first.key];
        }),
      );
    const rest = { first: { key: 'one', value: 1 }, 'one: end': 1, all: [1, 2] };
    expect(await run(rest)).toMatchObject({ outcome: 'completed', output: [1, [1, 2], 'one'] });
    const given = { ...rest, one: { id: 7 }, many: { ids: [8, 9] } };
    expect(await run(given)).toMatchObject({ outcome: 'completed', steps: [] });
    const boom = new Error('boom');
    const failed = (jobId: number) => ({
      outcome: 'failed',
      discarded: true,
      error: { name: 'ChildFailedError', jobId, kind: 'child', state: 'discarded', reason: 'boom' },
    });
    expect(await run({ ...rest, 'one: end': boom })).toMatchObject(failed(2));
    expect(await run({ ...rest, all: boom })).toMatchObject(failed(4));
    expect(await run({ ...rest, first: boom })).toMatchObject(failed(4));
    const own = new ChildFailedError(7, 'child', 'cancelled', 'by hand');
    expect(await run({ ...given, all: own })).toMatchObject({
      error: { jobId: 7, state: 'cancelled', reason: 'by hand' },
    });
  });

  test('what is given must be of the kind that its step has in the code', async () => {
    const child = defineJob('child');
    const errorOf = async (given: unknown, body: (step: GivenStep) => Promise<unknown>) => {
      const options = { payload, queue, steps: { s: given } };
      const run = await runHandler(
        fulfil,
        options,
        handle(fulfil, ({ step }) => body(step)),
      );
      return run.error instanceof Error ? run.error.message : run.outcome;
    };
    const boom = new Error('boom');
    expect(await errorOf(boom, (step) => step.sleep('s', 5))).toBe(
      "runHandler: the step 's' is a sleep, which cannot fail: give it what it has returned, " +
        "got the error 'boom'",
    );
    expect(await errorOf(boom, (step) => step.waitForSignal(approval, { name: 's' }))).toContain(
      "the step 's' is a signal, which cannot fail",
    );
    expect(await errorOf(undefined, (step) => step.first('s', { approval }))).toBe(
      "runHandler: the step 's' is step.first: give it { key, value }, or the Error of a child, got undefined",
    );
    expect(await errorOf(undefined, (step) => step.enqueue('s', child))).toBe(
      "runHandler: the step 's' is a step that enqueues jobs: give it { id } or { ids }, got undefined",
    );
    expect(await errorOf(boom, (step) => step.enqueue('s', child))).toContain("got the error 'boom'");
  });

  test('goes on with what it has recorded after an undo that has failed', async () => {
    const numbered = defineSignal('numbered', z.number());
    let refunds = 0;
    const run = await runHandler(
      fulfil,
      { payload, queue, signals: [sent(numbered, 1), sent(numbered, 2)] },
      handle(fulfil, async ({ step }) => {
        const one = await step.waitForSignal(numbered);
        const undo = () => {
          if (++refunds === 1) throw new Error('the line is busy');
        };
        await step.run('charge', { undo }, () => 1);
        const error = new NonRetryableError('out of stock');
        await step.undoAll(error).catch(() => step.undoAll(error));
        return [one, await step.waitForSignal(numbered, { name: 'second' }), refunds];
      }),
    );
    expect(run).toMatchObject({ outcome: 'completed', output: [1, 2, 2] });
  });

  test('decides which of several is first by the signals and steps that are given', async () => {
    const decide = handle(fulfil, async ({ step }) => {
      const child = await step.enqueue('child', fulfil, payload);
      const more = await step.addToFlow('more', fulfil, [{ payload }, { payload }]);
      const first = await step.first('decision', {
        made: child,
        approved: approval,
        late: { delayMs: 60_000 },
      });
      return [first, await step.waitForSignal(bare), more.length];
    });
    const signals = [sent(approval, { by: 'Ada', at: new Date(0) }), sent(bare)];
    const run = await runHandler(fulfil, { payload, queue, signals }, decide);
    const answer = { by: 'Ada', at: '1970-01-01T00:00:00.000Z' };
    expect(run).toMatchObject({
      output: [{ key: 'approved', value: answer }, null, 2],
      waitsFor: [],
    });
    expect(run.steps.find(({ name }) => name === 'decision')).toMatchObject({
      kind: 'first',
      signal: 'approval',
      output: { key: 'approved', value: answer },
    });
    const waiting = await runHandler(fulfil, { payload, queue }, decide);
    expect(waiting).toMatchObject({ outcome: 'waiting', waitsFor: ['decision'] });
    const given = { payload, queue, steps: { decision: { key: 'late' } }, signals: [sent(bare)] };
    expect(await runHandler(fulfil, given, decide)).toMatchObject({ output: [{ key: 'late' }, null, 2] });
  });

  test('hands over how the jobs have ended for which it has waited, by their kind', async () => {
    const read = defineJob('read', { output: z.object({ words: z.number() }) });
    const cover = defineJob('cover', { output: unvalidated<{ at: Date }>() });
    const parents = [
      ended(read, { state: 'completed', output: { words: 7 } }),
      ended(cover, { id: 5, state: 'completed', output: { at: new Date('2027-01-01') } }),
      ended(read, { state: 'discarded', reason: 'no such page' }),
      ended(read, { state: 'cancelled', reason: 'too late' }),
    ];
    const asks = async ({ step }: { readonly step: GivenStep }) => ({
      read: await step.parents(read),
      cover: await step.parents(cover),
      none: await step.parents(fulfil),
      counts: await step.parentCounts(),
    });
    const run = await runHandler(fulfil, { payload, queue, parents }, asks);
    expect(run.error).toBeUndefined();
    expect(run.output).toEqual({
      read: [
        { id: 100_001, state: 'completed', output: { words: 7 } },
        { id: 100_003, state: 'discarded', reason: 'no such page' },
        { id: 100_004, state: 'cancelled', reason: 'too late' },
      ],
      // As it would be read from the database.
      cover: [{ id: 5, state: 'completed', output: { at: '2027-01-01T00:00:00.000Z' } }],
      none: [],
      counts: { total: 4, completed: 2, failed: 2 },
    });
    // They are no steps, and an own child is none of them.
    expect(run.steps).toEqual([]);
    const child = await runHandler(fulfil, { payload, queue, parents }, async ({ step }) =>
      step.waitForJob(await step.enqueue('again', read)),
    );
    expect(child).toMatchObject({ outcome: 'waiting', waitsFor: ['again: end'] });
    expect(await runHandler(fulfil, { payload, queue }, asks)).toMatchObject({
      output: { read: [], cover: [], none: [], counts: { total: 0, completed: 0, failed: 0 } },
    });
  });

  test('refuses parents that cannot be', async () => {
    const read = defineJob('read', { output: z.object({ words: z.number() }) });
    const refused = (options: object) => runHandler(fulfil, { payload, queue, ...options }, handler);
    const end = { state: 'completed', output: { words: 7 } } as const;
    await expect(refused({ queue: createQueue(), parents: [ended(read, end)] })).rejects.toThrow(
      'for a queue with workflows',
    );
    await expect(refused({ parents: end })).rejects.toThrow('runHandler: parents must be an array');
    const wrong = [ended(read, { state: 'completed', output: { words: 'x' } } as never)];
    await expect(refused({ parents: wrong })).rejects.toThrow(InvalidOutputError);
    // @ts-expect-error It is the name of one.
    expect(() => ended('read', end)).toThrow('ended takes a job definition');
  });

  test('refuses steps and signals that cannot be', async () => {
    const refused = (options: object) => runHandler(fulfil, { payload, queue, ...options }, handler);
    await expect(refused({ queue: createQueue(), steps: {} })).rejects.toThrow('for a queue with workflows');
    await expect(refused({ queue: undefined, signals: [sent(bare)] })).rejects.toThrow(
      'for a queue with workflows',
    );
    await expect(refused({ steps: 'charge' })).rejects.toThrow('runHandler: steps must be an object');
    await expect(refused({ signals: bare })).rejects.toThrow('runHandler: signals must be an array');
    const wrong = [sent(approval, { by: 7 } as never)];
    await expect(refused({ signals: wrong })).rejects.toThrow(InvalidSignalError);
    await expect(refused({ steps: { charge: 1n } })).rejects.toThrow(
      "runHandler: the output of the step 'charge' cannot be stored: a BigInt",
    );
  });
});

/** Why an assertion failed. */
async function failure(assertion: Promise<void>): Promise<string> {
  return await assertion.then(
    () => 'it did not fail',
    (error: Error) => error.message,
  );
}

describe('toHaveRecordedSteps', () => {
  beforeAll(() => addWorkflowTables(database));

  test('compares what a job has recorded, and what it waits in', async () => {
    await inTransaction(database.db, async (tx) => {
      const { id } = await queue.enqueue(tx, fulfil, payload);
      await expect(tx).not.toHaveRecordedSteps(fulfil);
      await drainIn(tx, { queue, handlers: [handler], until: { hours: 2 } });
      await expect(tx).toHaveRecordedSteps(fulfil, { payload, steps: ['cool down', 'charge'], times: 1 });
      await expect(tx).toHaveRecordedSteps(fulfil, {
        steps: { charge: { id: 'ch_7', idempotencyKey: expect.any(String) }, approval: undefined },
        waitsFor: [],
      });
      await expect(tx).not.toHaveRecordedSteps(fulfil, { steps: { charge: { id: 'ch_8' } } });
      await expect(tx).not.toHaveRecordedSteps(fulfil, { payload: { orderId: 8 } });
      expect(await failure(expect(tx).toHaveRecordedSteps(fulfil, { steps: { ship: 1 } }))).toContain(
        `job ${id} (completed)\n    steps.ship: not recorded, expected 1`,
      );
    });
  });

  test('tells a step that is open from one that is over, and one that has failed', async () => {
    await inTransaction(database.db, async (tx) => {
      await queue.enqueue(tx, fulfil, payload);
      await drainIn(tx, { queue, handlers: [handler] });
      await expect(tx).toHaveRecordedSteps(fulfil, { steps: ['charge'], waitsFor: ['cool down'] });
      const message = await failure(
        expect(tx).toHaveRecordedSteps(fulfil, { steps: ['cool down'], waitsFor: ['approval'] }),
      );
      expect(message).toContain(
        'steps.cool down: not over: the job waits in this sleep, expected to be over',
      );
      expect(message).toContain('waitsFor: ["cool down"], expected ["approval"]');
    });
    await inTransaction(database.db, async (tx) => {
      await queue.enqueue(tx, fulfil, payload);
      const pays = handle(fulfil, ({ step }) =>
        step.run('pay', { attempts: 1 }, () => {
          throw new Error('card declined');
        }),
      );
      await drainIn(tx, { queue, handlers: [pays], failFast: false });
      // The records of an attempt that fails are undone with it.
      await expect(tx).not.toHaveRecordedSteps(fulfil, { steps: { pay: expect.anything() } });
    });
  });

  test('uses up the attempts of a job whose step is rolled back with each failure', async () => {
    await inTransaction(database.db, async (tx) => {
      const { id } = await queue.enqueue(tx, fulfil, payload, { maxAttempts: 2 });
      let asked = 0;
      const failing = defineJob('fulfil', { payload: fulfil.payload, backoff: () => asked++ });
      const fails = handle(failing, async ({ step }) => {
        await step.run('charge', () => 1);
        throw new Error('always');
      });
      const options = { queue, handlers: [fails], failFast: false, max: 5 };
      expect(await drainIn(tx, { ...options, until: { days: 2 } })).toMatchObject({
        failed: 2,
        discarded: 1,
      });
      expect(await queue.find(tx, id)).toMatchObject({ state: 'discarded', attempt: 2 });
      // What was decided is counted, and not decided once more.
      expect(asked).toBe(1);
    });
  });

  test('counts what has ended before time passes', async () => {
    await inTransaction(database.db, async (tx) => {
      const part = defineJob('part', {
        payload: unvalidated<string>(),
        output: unvalidated<unknown>(),
        deadlineMs: 7_200_000,
      });
      const ran: string[] = [];
      const parts = handle(part, ({ payload, db }) => {
        ran.push(payload);
        return payload === 'begins' ? queue.enqueue(db, part, 'in 1 h', { delayMs: 3_600_000 }) : payload;
      });
      const waits = handle(fulfil, async ({ step }) => {
        const child = await step.enqueue('child', part, 'child');
        return (await step.first('which', { child, late: { delayMs: 3_600_000 } })).key;
      });
      const { id } = await queue.enqueue(tx, fulfil, payload);
      await queue.workflows.enqueueFlow(tx, (flow) => {
        const first = flow.add(part, 'begins');
        flow.add(part, 'after it', { after: [first] });
      });
      await drainIn(tx, { queue, handlers: [waits, parts], until: { hours: 3 } });
      expect(await queue.find(tx, id)).toMatchObject({ state: 'completed', output: 'child' });
      expect(ran).toEqual(['begins', 'child', 'after it', 'in 1 h']);
    });
  });

  test('is for a queue with workflows, under the names of its tables', async () => {
    const { toHaveRecordedSteps } = matchersOf(createQueue());
    const context = { equals: () => true };
    await expect(toHaveRecordedSteps.call(context, database.db, fulfil)).rejects.toThrow(
      'needs a queue with workflows',
    );
    const mail = createQueue({
      tables: createQueueTables({ prefix: 'mail_' }),
      workflows: workflowsIn(createWorkflowTables({ prefix: 'mail_' })),
    });
    const { db, close } = await createTestDatabase({ queue: mail });
    const { id } = await mail.enqueue(db, fulfil, payload);
    await db.$client.query(
      `insert into mail_steps (job_id, queue, name, kind, fence, started_at, ended_at, output)
       values (${id}, 'default', 'charge', 'run', 1, now(), now(), '1')`,
    );
    const matchers = matchersOf(mail);
    const equals = (a: unknown, b: unknown) => Object.is(a, b);
    const match = (steps: Record<string, unknown>) =>
      matchers.toHaveRecordedSteps.call({ equals }, db, fulfil, { steps });
    expect(await match({ charge: 1 })).toMatchObject({ pass: true });
    expect(await match({ charge: 2 })).toMatchObject({ pass: false });
    await close();
  });

  test('refuses expectations that are none', async () => {
    const { db } = database;
    const refused = (assertion: Promise<void>) => expect(assertion).rejects;
    const steps = 'charge' as never;
    await refused(expect(db).toHaveRecordedSteps(fulfil, { steps })).toThrow('steps must be an object');
    await refused(expect(db).toHaveRecordedSteps(fulfil, { waitsFor: steps })).toThrow(
      'waitsFor must be an array',
    );
    const other = { steps: ['charge'] } as object;
    await refused(expect(db).toHaveEnqueued(fulfil, other)).toThrow('belong to toHaveRecordedSteps');
  });

  test('a step of a job that runs inside of a step of another is not inside of that', async () => {
    const inner = defineJob('inner', { output: unvalidated<string>() });
    const inside = handle(inner, async ({ step }) => {
      await step.sleep('over at once', 0);
      return await step.run('inner', () => 'ran');
    });
    const outside = handle(fulfil, async ({ step }) => {
      return await step.transaction('outer', async (tx) => {
        const { id } = await inline(queue, { handlers: [inside] }).enqueue(tx, inner);
        const found = await queue.find(tx, inner, id);
        return found?.state === 'completed' ? found.output : found?.state;
      });
    });
    await inTransaction(database.db, async (tx) => {
      const { id } = await inline(queue, { handlers: [outside] }).enqueue(tx, fulfil, payload);
      expect(await queue.find(tx, id)).toMatchObject({ state: 'completed', output: 'ran' });
      expect((await queue.workflows.steps(tx, id)).map(({ name }) => name)).toEqual(['outer']);
    });
  });

  test('a transaction with tables of its own has those of workflows, too', async () => {
    await inTransaction(
      database.db,
      async (tx) => {
        await queue.enqueue(tx, fulfil, payload);
        await drainIn(tx, { queue, handlers: [handler] });
        await expect(tx).toHaveRecordedSteps(fulfil, { waitsFor: ['cool down'] });
      },
      { queue },
    );
    expect(await database.client`select from queue_steps`).toHaveLength(0);
  });
});
