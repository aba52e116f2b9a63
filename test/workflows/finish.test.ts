import { sql } from 'drizzle-orm';
import {
  createQueue,
  createWorker,
  defineJob,
  defineSignal,
  fixedBackoff,
  handlersFor,
  InvalidOutputError,
  limitsIn,
  runNext,
  UnknownKindError,
  unvalidated,
  type Worker,
  workflowsIn,
} from 'drizzle-queue';
import * as control from 'drizzle-queue/schema/control';
import * as workflowTables from 'drizzle-queue/schema/workflows';
import { afterEach, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { z } from 'zod';
import { claimJobs } from '../../src/core/queries/claim/claim-jobs.ts';
import { atFaultPoints } from '../../src/core/sql/fault-point.ts';
import { claimOf, clearTables, jobRow, resultRow, tables } from '../queries/support/jobs.ts';
import { addControlTables, addWorkflowTables, clearWorkflowTables } from '../support/control-tables.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';
import { blocked, type Tx, whileOpen } from './fixtures/open-transactions.ts';

const database = useTestDatabase({ max: 10 });
const queue = createQueue({ tables, workflows: workflowsIn(workflowTables) });
const { finish, signal } = {
  finish: queue.workflows.finish.bind(queue.workflows),
  signal: queue.workflows.signal.bind(queue.workflows),
};
const { handle } = handlersFor<typeof database.db, typeof queue>();
const work = defineJob('work', {
  queue: 'q',
  payload: unvalidated<number>(),
  output: z.object({ by: z.string() }),
  backoff: fixedBackoff(0),
});
const outcome = defineJob('outcome', { queue: 'q', keepResult: 'outcome' });
const nothing = defineJob('nothing', { queue: 'q', keepResult: false });
const child = defineJob('child', {
  queue: 'children',
  payload: unvalidated<number>(),
  output: unvalidated<number>(),
});
const answer = defineSignal('answer', unvalidated<number>());
const output = { by: 'Ada' };

beforeAll(async () => {
  await addControlTables(database);
  await addWorkflowTables(database);
});
beforeEach(async () => {
  await clearTables(database.client);
  await clearWorkflowTables(database);
});
afterEach(() => atFaultPoints());

type Run = Parameters<typeof handle<typeof work>>[1];
const waits: Run = async ({ step }) => ({ by: `${await step.waitForSignal(answer)}` });
const stateOf = async (id: number) => (await queue.find(database.db, id))?.state;
const enqueue = async (options: { uniqueKey?: string; delayMs?: number } = {}) =>
  (await queue.enqueue(database.db, work, 1, options)).id;

/** A job that waits in its middle. */
async function waiting(run: Run = waits, options: { uniqueKey?: string } = {}): Promise<number> {
  const id = await enqueue(options);
  expect(await runNext(database.db, { queue, handlers: [handle(work, run)], id })).toMatchObject({
    outcome: 'waiting',
  });
  return id;
}

async function start(run: Run): Promise<Worker> {
  const worker = createWorker(database.db, { queue, handlers: [handle(work, run)], log: false });
  onTestFinished(() => worker.stop());
  await worker.start();
  return worker;
}

describe('finishing a job that waits', () => {
  test('ends it as its handler would: with its output, its key freed, its steps kept', async () => {
    const id = await waiting(
      async ({ step }) => {
        await step.run('one', () => 1);
        return await waits({ step } as Parameters<Run>[0]);
      },
      { uniqueKey: 'order-1' },
    );
    expect(await finish(database.db, { job: work, uniqueKey: 'order-1' }, output)).toBe('finished');
    expect(await queue.find(database.db, work, id)).toMatchObject({
      state: 'completed',
      output,
      payload: 1,
      attempt: 0,
      workerId: null,
      claimedAt: null,
      errors: [],
    });
    const record = await queue.find(database.db, work, id);
    expect(record?.runAt).toEqual(record?.state === 'completed' && record.finishedAt);
    expect(await queue.workflows.steps(database.db, id)).toHaveLength(2);
    expect(await queue.enqueue(database.db, work, 1, { uniqueKey: 'order-1' })).toMatchObject({
      outcome: 'enqueued',
    });
    expect(await finish(database.db, { job: work, id }, output)).toBe('gone');
  });

  test('commits and rolls back with the transaction', async () => {
    const id = await waiting();
    const rolledBack = database.db.transaction(async (tx) => {
      expect(await finish(tx, { job: work, id }, output)).toBe('finished');
      tx.rollback();
    });
    await expect(rolledBack).rejects.toThrow();
    expect(await stateOf(id)).toBe('waiting');
    await database.db.transaction((tx) => finish(tx, { job: work, id }, output));
    expect(await stateOf(id)).toBe('completed');
  });

  test('wakes those who wait for its end, also by a notice', async () => {
    const { id } = await queue.enqueue(database.db, work, 1, { awaited: true });
    await runNext(database.db, { queue, handlers: [handle(work, waits)], id });
    const ended = queue.waitFor(database.db, work, id, { awaited: true });
    expect(await finish(database.db, { job: work, id }, output)).toBe('finished');
    expect(await ended).toMatchObject({ state: 'completed', output });
  });

  test.each([
    [
      'a timeout',
      async ({ step }) => ({ by: `${await step.waitForSignal(answer, { timeoutMs: 3_600_000 })}` }),
    ],
    [
      'a sleep',
      async ({ step }) => {
        await step.sleep('an hour', 3_600_000);
        return output;
      },
    ],
  ] satisfies [string, Run][])('that waits with a limit: %s', async (_, run) => {
    const id = await waiting(run);
    expect(await stateOf(id)).toBe('scheduled');
    expect(await finish(database.db, { job: work, id }, output)).toBe('finished');
    expect(await stateOf(id)).toBe('completed');
  });

  test('that was just woken, and not claimed yet', async () => {
    const id = await waiting();
    await signal(database.db, { id }, answer, 1);
    expect(await stateOf(id)).toBe('due');
    expect(await finish(database.db, { job: work, id }, output)).toBe('finished');
  });

  test('keeps what its definition says', async () => {
    for (const [job, kept] of [
      [outcome, { state: 'completed', payload: null, output: null }],
      [nothing, undefined],
    ] as const) {
      const { id } = await queue.enqueue(database.db, job);
      const handlers = [handle(job, async ({ step }) => void (await step.waitForSignal(answer)))];
      await runNext(database.db, { queue, handlers, id });
      expect(await finish(database.db, { job, id })).toBe('finished');
      expect(await jobRow(database.client, id)).toBeUndefined();
      const row = await resultRow(database.client, id);
      if (kept === undefined) expect(row).toBeUndefined();
      else expect(row).toMatchObject(kept);
    }
  });

  test('refuses an output that the definition refuses, before anything is sent', async () => {
    const id = await waiting();
    // @ts-expect-error: the definition says what an output is
    await expect(finish(database.db, { job: work, id }, { by: 1 })).rejects.toThrow(InvalidOutputError);
    // @ts-expect-error: and that there is one
    await expect(finish(database.db, { job: work, id })).rejects.toThrow(InvalidOutputError);
    // @ts-expect-error: by its id alone nobody knows what an output is
    await expect(finish(database.db, { id }, output)).rejects.toThrow(UnknownKindError);
    expect(await stateOf(id)).toBe('waiting');
  });

  test('counts it for the job that waits for it, and its own children go on', async () => {
    const parent = defineJob('parent', { queue: 'q', output: unvalidated<unknown>() });
    const handlers = [
      handle(parent, async ({ step }) => await step.waitForJob(await step.enqueue('one', work, 1))),
      handle(work, async ({ step }) => {
        await step.enqueue('grandchild', child, 7);
        return await waits({ step } as Parameters<Run>[0]);
      }),
    ];
    const { id } = await queue.enqueue(database.db, parent);
    const worker = createWorker(database.db, { queue, handlers, queues: { q: {} }, log: false });
    onTestFinished(() => worker.stop());
    await worker.start();
    const found = await until(async () => {
      const { jobs } = await queue.list(database.db, { kind: 'work', state: 'waiting' });
      return jobs[0]?.id;
    });
    expect(await finish(database.db, { job: work, id: Number(found) }, output)).toBe('finished');
    expect(await queue.waitFor(database.db, parent, id)).toMatchObject({ output });
    const [grandchild] = (await queue.list(database.db, { kind: 'child' })).jobs;
    expect(grandchild).toMatchObject({ state: 'due' });
    expect(
      await database.client`select cancel_reason from queue_batches where cancel_reason is not null`,
    ).toEqual([]);
  });

  test('of a flow, which has not begun: those behind it see its output', async () => {
    const last = defineJob('last', { queue: 'q', output: unvalidated<unknown>() });
    const { jobIds } = await queue.workflows.enqueueFlow(database.db, (flow) => {
      const first = flow.add(child, 1, { delayMs: 3_600_000 });
      flow.add(last, undefined, { after: [flow.add(work, 1, { after: [first] })] });
    });
    const [first = 0, second = 0, third = 0] = jobIds;
    expect(await stateOf(second)).toBe('waiting');
    // One without a wait before it has only a delay.
    expect(await finish(database.db, { job: child, id: first }, 1)).toBe('not-waiting');
    expect(await finish(database.db, { job: work, id: second }, output)).toBe('finished');
    const handlers = [handle(last, async ({ step }) => await step.parents(work))];
    const ran = await until(() => runNext(database.db, { queue, handlers }));
    expect(ran).toMatchObject({ outcome: 'completed', job: { id: third } });
    expect(await queue.find(database.db, last, third)).toMatchObject({
      output: [{ id: second, state: 'completed', output }],
    });
  });

  test('that keeps its place in its group until its next attempt: the one behind it begins', async () => {
    const inOrder = createQueue({
      tables,
      workflows: workflowsIn(workflowTables),
      limits: limitsIn(control, { q: { groups: { serial: 'end' } } }),
    });
    const slow = defineJob('slow', {
      queue: 'q',
      payload: unvalidated<number>(),
      output: z.object({ by: z.string() }),
      backoff: fixedBackoff(3_600_000),
    });
    const { id } = await inOrder.enqueue(database.db, slow, 1, { group: 'a' });
    const behind = await inOrder.enqueue(database.db, nothing, undefined, { group: 'a' });
    const began: number[] = [];
    const handlers = [
      handle(slow, async ({ step }) => {
        const failing = step.run('no', async () => {
          await until(async () => (await inOrder.workflows.steps(database.db, id)).length > 0);
          throw new Error('no');
        });
        await Promise.all([step.waitForSignal(answer), failing]);
        return output;
      }),
      handle(nothing, async ({ job }) => void began.push(job.id)),
    ];
    const worker = createWorker(database.db, { queue: inOrder, handlers, log: false });
    onTestFinished(() => worker.stop());
    const failed = new Promise((resolve) => worker.on('failed', resolve));
    await worker.start();
    await failed;
    expect(await inOrder.find(database.db, behind.id)).toMatchObject({ state: 'due' });
    // It does not wait for the signal any more, but for its next attempt.
    expect(await inOrder.workflows.finish(database.db, { job: slow, id }, output)).toBe('not-waiting');
    // As one that waits and was claimed and given back, since its beginning could not be recorded.
    await database.client`update queue_jobs set blockers = 0 where id = ${id}`;
    expect(await inOrder.workflows.finish(database.db, { job: slow, id }, output)).toBe('finished');
    await until(() => began.includes(behind.id));
    expect(await inOrder.find(database.db, slow, id)).toMatchObject({
      state: 'completed',
      group: 'a',
      errors: [{ message: 'no' }],
    });
  });
});

describe('what it leaves alone', () => {
  test('a job that is not there, or of another kind', async () => {
    const id = await waiting();
    expect(await finish(database.db, { job: work, id: id + 1_000 }, output)).toBe('gone');
    expect(await finish(database.db, { job: child, id }, 1)).toBe('gone');
    expect(await finish(database.db, { job: work, uniqueKey: 'none' }, output)).toBe('gone');
    expect(await stateOf(id)).toBe('waiting');
  });

  test('one that has not begun, has a delay, or waits for its next attempt', async () => {
    const due = await enqueue();
    const later = await enqueue({ delayMs: 3_600_000 });
    expect(await finish(database.db, { job: work, id: due }, output)).toBe('not-waiting');
    expect(await finish(database.db, { job: work, id: later }, output)).toBe('not-waiting');
    const failing = handle(work, async ({ step }) => {
      await step.sleep('no time', 0);
      await step.run('no', { attempts: 5 }, () => {
        throw new Error('no');
      });
      return output;
    });
    await drainOnce(failing, due);
    expect(await queue.workflows.steps(database.db, due)).toMatchObject([{ kind: 'sleep' }, { kind: 'run' }]);
    expect(await finish(database.db, { job: work, id: due }, output)).toBe('not-waiting');
  });

  test('one that runs', async () => {
    let goOn = () => {};
    const gate = new Promise<void>((resolve) => {
      goOn = resolve;
    });
    let runs = 0;
    await start(async () => {
      runs++;
      await gate;
      return output;
    });
    const id = await enqueue();
    await until(() => runs === 1);
    expect(await finish(database.db, { job: work, id }, { by: 'Bob' })).toBe('running');
    goOn();
    expect(await queue.waitFor(database.db, work, id)).toMatchObject({ output });
  });

  test('one whose end is requested: it ends as cancelled', async () => {
    const id = await waiting();
    await database.client`
      update queue_jobs set cancel_reason = 'a job before it failed', run_at = statement_timestamp() where id = ${id}`;
    expect(await finish(database.db, { job: work, id }, output)).toBe('not-waiting');
    await start(waits);
    expect(await queue.waitFor(database.db, work, id)).toMatchObject({ state: 'cancelled' });
  });
});

async function drainOnce(handler: ReturnType<typeof handle<typeof work>>, id: number): Promise<void> {
  const worker = createWorker(database.db, { queue, handlers: [handler], log: false });
  onTestFinished(() => worker.stop());
  const failed = new Promise((resolve) => worker.on('failed', resolve));
  await worker.start();
  await failed;
  await worker.stop();
  // Its next attempt is not due yet.
  await database.client`update queue_jobs set run_at = statement_timestamp() + interval '1 hour' where id = ${id}`;
}

describe('at the same time', () => {
  test('as a claim: the one that comes first wins, in both orders', async () => {
    const id = await waiting();
    await signal(database.db, { id }, answer, 1);
    await database.db.transaction(async (tx) => {
      expect(await finish(tx, { job: work, id }, output)).toBe('finished');
      // The claim does not wait for it, and takes nothing.
      expect(await claimJobs(database.db, queue.tables, claimOf({ kinds: ['work'] }))).toEqual([]);
    });
    expect(await stateOf(id)).toBe('completed');
    const other = await waiting();
    await signal(database.db, { id: other }, answer, 1);
    const claimed: unknown[] = [];
    await database.db.transaction(async (tx) => {
      claimed.push(...(await claimJobs(tx, queue.tables, claimOf({ kinds: ['work'] }))));
      expect(await finish(database.db, { job: work, id: other }, output)).toBe('locked');
    });
    expect(claimed).toMatchObject([{ id: other }]);
    expect(await finish(database.db, { job: work, id: other }, output)).toBe('running');
    expect(await stateOf(other)).toBe('running');
  });

  test('as a claim that commits while it looks: it says that the job runs', async () => {
    const id = await waiting();
    await signal(database.db, { id }, answer, 1);
    let commit = () => {};
    const committing = new Promise<void>((resolve) => {
      commit = resolve;
    });
    let isLocked = () => {};
    const locked = new Promise<void>((resolve) => {
      isLocked = resolve;
    });
    const claiming = database.db.transaction(async (tx) => {
      await claimJobs(tx, queue.tables, claimOf({ kinds: ['work'] }));
      isLocked();
      await committing;
    });
    await locked;
    atFaultPoints(async (at) => {
      if (at !== 'finish: refused') return;
      atFaultPoints();
      commit();
      await claiming;
    });
    expect(await finish(database.db, { job: work, id }, output)).toBe('running');
  });

  test('as a second finish: one ends it', async () => {
    const id = await waiting();
    await database.db.transaction(async (tx) => {
      expect(await finish(tx, { job: work, id }, output)).toBe('finished');
      expect(await finish(database.db, { job: work, id }, { by: 'Bob' })).toBe('locked');
    });
    expect(await finish(database.db, { job: work, id }, { by: 'Bob' })).toBe('gone');
    const others = await Promise.all(
      Array.from({ length: 20 }, async () => {
        const id = await waiting();
        const ends = await Promise.all(
          ['a', 'b', 'c'].map((by) => finish(database.db, { job: work, id }, { by })),
        );
        return ends.filter((end) => end === 'finished').length;
      }),
    );
    expect(others).toEqual(others.map(() => 1));
  }, 240_000);

  test('naively, as a second finish that looks and deletes: both say that they have ended it', async () => {
    const id = await waiting();
    const look = async (db: Tx | typeof database.db) =>
      await db.execute(sql`select from queue_jobs where id = ${id} and worker_id is null and blockers = 0`);
    const remove = async (db: Tx | typeof database.db) =>
      await db.execute(sql`delete from queue_jobs where id = ${id} returning id`);
    let second: Promise<unknown> = Promise.resolve();
    const found: unknown[] = [];
    await whileOpen(
      database,
      async (tx) => {
        found.push(...(await look(tx)));
        expect(await remove(tx)).toHaveLength(1);
      },
      async () => {
        found.push(...(await look(database.db)));
        second = (await blocked(database, remove(database.db))).answer;
      },
    );
    expect(found).toHaveLength(2);
    expect(await second).toHaveLength(0);
  });

  test('as a cancel: the one that comes first wins, in both orders', async () => {
    const id = await waiting();
    await database.db.transaction(async (tx) => {
      expect(await finish(tx, { job: work, id }, output)).toBe('finished');
      expect(await queue.cancel(database.db, id)).toEqual({ cancelled: false, reason: 'locked' });
    });
    expect(await queue.cancel(database.db, id)).toEqual({ cancelled: false, reason: 'finished' });
    const other = await waiting();
    await database.db.transaction(async (tx) => {
      expect(await queue.cancel(tx, other)).toEqual({ cancelled: true });
      expect(await finish(database.db, { job: work, id: other }, output)).toBe('locked');
    });
    expect(await finish(database.db, { job: work, id: other }, output)).toBe('gone');
    expect(await stateOf(other)).toBe('cancelled');
  });

  test('as a signal whose transaction is open: the job can be finished after its commit', async () => {
    const id = await waiting();
    await database.db.transaction(async (tx) => {
      expect(await signal(tx, { id }, answer, 1)).toBe('sent');
      expect(await finish(database.db, { job: work, id }, output)).toBe('locked');
    });
    expect(await finish(database.db, { job: work, id }, output)).toBe('finished');
    expect(await signal(database.db, { id }, answer, 1)).toBe('gone');
  });

  test('as the end of its connection: the job still waits', async () => {
    const id = await waiting();
    const [dying] = await database.connect(1);
    if (dying === undefined) throw new Error('no connection');
    await dying.client`begin`;
    const [backend] = await dying.client<[{ pid: number }]>`select pg_backend_pid() as pid`;
    expect(await finish(dying.db, { job: work, id }, output)).toBe('finished');
    await database.client`select pg_terminate_backend(${backend.pid}, 10000)`;
    expect(await stateOf(id)).toBe('waiting');
    expect(await finish(database.db, { job: work, id }, output)).toBe('finished');
  });
});
