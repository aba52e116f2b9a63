import {
  createQueue,
  createWorker,
  defineJob,
  defineSignal,
  drain,
  fixedBackoff,
  type Handler,
  handlersFor,
  InvalidPayloadError,
  isFinal,
  limitsIn,
  MailboxFullError,
  NonRetryableError,
  runNext,
  unvalidated,
  workflowsIn,
} from 'drizzle-queue';
import * as control from 'drizzle-queue/schema/control';
import * as workflowTables from 'drizzle-queue/schema/workflows';
import { drainIn } from 'drizzle-queue/testing';
import { afterEach, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { z } from 'zod';
import { claimJobs } from '../../src/core/queries/claim/claim-jobs.ts';
import { atFaultPoints } from '../../src/core/sql/fault-point.ts';
import { deleteLeftBatches } from '../../src/features/batches/queries/delete-left-batches.ts';
import { claimOf, clearTables, jobRow, tables } from '../queries/support/jobs.ts';
import { addControlTables, addWorkflowTables, clearWorkflowTables } from '../support/control-tables.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';

const database = useTestDatabase({ max: 10 });
const seen: string[] = [];
const queue = createQueue({
  tables,
  workflows: workflowsIn(workflowTables),
  around: {
    enqueue: async (jobs, next) => {
      seen.push(...jobs.map(({ kind, payload }) => `${kind} ${JSON.stringify(payload)}`));
      return await next();
    },
  },
});
const { workflows } = queue;
const { handle } = handlersFor<typeof database.db, typeof queue>();
const work = defineJob('work', {
  queue: 'q',
  payload: z.number(),
  output: unvalidated<unknown>(),
  backoff: fixedBackoff(0),
  maxAttempts: 2,
});
const child = defineJob('child', {
  queue: 'q',
  payload: unvalidated<number>(),
  output: unvalidated<number>(),
  maxAttempts: 1,
});
const answer = defineSignal('answer', unvalidated<number>());

let calls: string[] = [];
beforeAll(async () => {
  await addControlTables(database);
  await addWorkflowTables(database);
});
beforeEach(async () => {
  calls = [];
  await clearTables(database.client);
  await clearWorkflowTables(database);
});
afterEach(() => atFaultPoints());

type Run = Parameters<typeof handle<typeof work>>[1];
type Step = Parameters<Run>[0]['step'];

const call = (step: Step, name: string, value: unknown = name) =>
  step.run(name, { attempts: 1 }, () => {
    calls.push(name);
    if (value instanceof Error) throw value;
    return value;
  });

const drained = (run: Run, others: Handler<typeof database.db>[] = []) =>
  drain(database.db, { queue, handlers: [handle(work, run), ...others], log: false, deadlineMs: 20_000 });

/** The output of a job that drains end; `until` since children are counted within a second. */
async function outputOf(id: number, run: Run, others: Handler<typeof database.db>[] = []): Promise<unknown> {
  return await until(async () => {
    await drained(run, others);
    const found = await queue.find(database.db, id);
    if (found?.state === 'completed') return { output: found.output };
    return found !== undefined && 'finishedAt' in found ? found : undefined;
  });
}

const enqueue = async (payload = 1, options = {}) =>
  (await queue.enqueue(database.db, work, payload, options)).id;

async function stateOf(id: number) {
  return (await queue.find(database.db, id))?.state;
}

const abc: Run = async ({ step, payload }) => [
  await call(step, 'a', payload),
  await call(step, 'b'),
  await call(step, 'c'),
];

describe('a fork', () => {
  test('is a new job that takes over what had ended, and leaves the other one as it is', async () => {
    const id = await enqueue(7, { uniqueKey: 'k', priority: 3, maxAttempts: 9, metadata: { tenant: 'a' } });
    await outputOf(id, abc);
    const before = await workflows.steps(database.db, id);
    calls = [];
    seen.length = 0;
    const forked = await workflows.fork(database.db, id, { from: 'b' });
    expect(forked).toEqual({ id: expect.any(Number), steps: 1 });
    expect(seen).toEqual(['work 7']);
    expect(await queue.find(database.db, forked.id)).toMatchObject({
      kind: 'work',
      state: 'due',
      payload: 7,
      priority: 3,
      maxAttempts: 9,
      uniqueKey: null,
      metadata: { tenant: 'a', forkedFrom: id },
    });
    expect(await outputOf(forked.id, abc)).toEqual({ output: [7, 'b', 'c'] });
    expect(calls).toEqual(['b', 'c']);
    expect(await workflows.steps(database.db, id)).toEqual(before);
  });

  test('reads its steps at its first claim: in a worker, in a drain, in runNext, in drainIn', async () => {
    const id = await enqueue();
    await outputOf(id, abc);
    calls = [];
    const fork = async () => (await workflows.fork(database.db, id, { from: 'c' })).id;
    const handlers = [handle(work, abc)];
    await fork();
    expect(await runNext(database.db, { queue, handlers })).toMatchObject({ outcome: 'completed' });
    await fork();
    await drain(database.db, { queue, handlers, log: false, deadlineMs: 20_000 });
    await fork();
    await database.db.transaction(async (tx) => void (await drainIn(tx, { queue, handlers })));
    const worker = createWorker(database.db, { queue, handlers, log: false });
    onTestFinished(() => worker.stop());
    await worker.start();
    await queue.waitFor(database.db, work, await fork());
    expect(calls).toEqual(['c', 'c', 'c', 'c']);
  });

  test('takes a payload that its definition accepts', async () => {
    const id = await enqueue();
    await outputOf(id, abc);
    const payload = 'no' as unknown as number;
    await expect(workflows.fork(database.db, id, { from: 'a', job: work, payload })).rejects.toThrow(
      InvalidPayloadError,
    );
    // @ts-expect-error: the definition says of what type it is
    const untyped = () => workflows.fork(database.db, id, { from: 'a', job: work, payload: 'no' });
    await expect(untyped()).rejects.toThrow(InvalidPayloadError);
    await expect(workflows.fork(database.db, id, { from: 'a', payload: 5 } as never)).rejects.toThrow(
      'a payload needs the definition',
    );
    await expect(workflows.fork(database.db, id, { from: 'a', job: child, payload: 1 })).rejects.toThrow(
      `job ${id} is of the kind 'work', not 'child'`,
    );
    const forked = await workflows.fork(database.db, id, { from: 'a', job: work, payload: 5 });
    expect(await outputOf(forked.id, abc)).toEqual({ output: [5, 'b', 'c'] });
  });

  test('of a job whose payload is not kept needs one', async () => {
    const brief = defineJob('brief', { queue: 'q', payload: z.number(), keepResult: 'outcome' });
    const handlers = [handle(brief, async ({ step }) => void (await step.run('a', () => 1)))];
    const { id } = await queue.enqueue(database.db, brief, 1);
    await runNext(database.db, { queue, handlers });
    await expect(workflows.fork(database.db, id, { from: 'a' })).rejects.toThrow('is not kept: give one');
    await workflows.fork(database.db, id, { from: 'a', job: brief, payload: 2 });
    expect(await runNext(database.db, { queue, handlers })).toMatchObject({ outcome: 'completed' });
  });

  test('from a step that is not there is an error that names those that are', async () => {
    const id = await enqueue();
    await expect(workflows.fork(database.db, id, { from: 'a' })).rejects.toThrow(
      `fork: job ${id} has no step 'a': it has recorded none yet`,
    );
    await outputOf(id, abc);
    await expect(workflows.fork(database.db, id, { from: 'd' })).rejects.toThrow(
      `fork: job ${id} has no step 'd': it has 'a', 'b', 'c'`,
    );
    await expect(workflows.fork(database.db, id + 1_000, { from: 'a' })).rejects.toThrow('there is no job');
    expect((await queue.list(database.db, {})).jobs).toHaveLength(1);
  });

  test('takes over signals that were received, and the next one is the next that it waits for', async () => {
    const run: Run = async ({ step }) => [
      await step.waitForSignal(answer),
      await call(step, 'b'),
      await step.waitForSignal(answer, { name: 'second' }),
    ];
    const id = await enqueue();
    await workflows.signal(database.db, { id }, answer, 1);
    await workflows.signal(database.db, { id }, answer, 2);
    expect(await outputOf(id, run)).toEqual({ output: [1, 'b', 2] });
    const forked = await workflows.fork(database.db, id, { from: 'b' });
    await drained(run);
    expect(await stateOf(forked.id)).toBe('waiting');
    expect(await workflows.mailboxes(database.db, forked.id)).toMatchObject([
      { sent: 1, received: 1, waiting: true },
    ]);
    await workflows.signal(database.db, { id: forked.id }, answer, 3);
    expect(await outputOf(forked.id, run)).toEqual({ output: [1, 'b', 3] });
  });

  test('of a live job that waits: both go on, each with a signal of its own', async () => {
    const run: Run = async ({ step }) => {
      await step.sleep('no time', 1);
      await call(step, 'a');
      return await step.waitForSignal(answer);
    };
    const id = await enqueue();
    await until(async () => {
      await drained(run);
      return (await stateOf(id)) === 'waiting';
    });
    const forked = await workflows.fork(database.db, id, { from: 'answer' });
    expect(forked.steps).toBe(2);
    await drained(run);
    expect(calls).toEqual(['a']);
    await workflows.signal(database.db, { id: forked.id }, answer, 2);
    await workflows.signal(database.db, { id }, answer, 1);
    expect(await outputOf(id, run)).toEqual({ output: 1 });
    expect(await outputOf(forked.id, run)).toEqual({ output: 2 });
  });

  test('takes over that it has added jobs to its flow, though it is in none', async () => {
    const added = [handle(child, ({ payload }) => payload)];
    const run: Run = async ({ step, payload }) => {
      const ids = await step.addToFlow('more', child, [{ payload }]);
      return [ids, await call(step, 'index')];
    };
    const { jobIds } = await workflows.enqueueFlow(database.db, (flow) => void flow.add(work, 1));
    const [id = 0] = jobIds;
    const first = await outputOf(id, run, added);
    const forked = await workflows.fork(database.db, id, { from: 'index' });
    expect(forked.steps).toBe(1);
    expect(await outputOf(forked.id, run, added)).toEqual(first);
    expect(calls).toEqual(['index', 'index']);
    const again = await workflows.fork(database.db, forked.id, { from: 'index' });
    expect(await outputOf(again.id, run, added)).toEqual(first);
  });

  test('enqueues children again unless all had ended when the step began', async () => {
    let gate = true;
    const children = [handle(child, ({ payload }) => payload * 10)];
    const run: Run = async ({ step }) => {
      const one = await step.enqueue('one', child, 1);
      const first = await step.waitForJob(one);
      await call(step, 'between');
      const two = await step.enqueue('two', child, 2);
      if (gate) await call(step, 'open', new Error('no'));
      return [first, one.id, await step.waitForJob(two), two.id];
    };
    const id = await enqueue();
    const discarded = await outputOf(id, run, children);
    expect(discarded).toMatchObject({ state: 'discarded' });
    gate = false;
    const source = await workflows.steps(database.db, id);
    const idOf = (name: string) =>
      (source.find((step) => step.name === name)?.output as { ids: number[] } | undefined)?.ids[0];
    const forked = await workflows.fork(database.db, id, { from: 'open' });
    expect((await workflows.steps(database.db, forked.id)).map(({ name }) => name)).toEqual([
      'one',
      'one: end',
      'between',
    ]);
    const ended = (await outputOf(forked.id, run, children)) as { output: number[] };
    expect(ended.output).toEqual([10, idOf('one'), 20, expect.any(Number)]);
    expect(ended.output[3]).not.toBe(idOf('two'));
  });

  test('does again what was undone', async () => {
    let isBroken = true;
    const run: Run = async ({ step }) => {
      try {
        await call(step, 'a');
        await step.run('charge', { undo: () => void calls.push('refund') }, () => void calls.push('charge'));
        await call(step, 'ship', isBroken ? new Error('no') : 1);
        return 'done';
      } catch (error) {
        if (isFinal(error)) await step.undoAll(error);
        throw error;
      }
    };
    const id = await enqueue();
    expect(await outputOf(id, run)).toMatchObject({ state: 'discarded' });
    expect(calls).toEqual(['a', 'charge', 'ship', 'refund']);
    isBroken = false;
    calls = [];
    const forked = await workflows.fork(database.db, id, { from: 'ship' });
    expect(await outputOf(forked.id, run)).toEqual({ output: 'done' });
    expect(calls).toEqual(['charge', 'ship']);
    calls = [];
    expect(await workflows.redrive(database.db, id, { from: 'ship' })).toBe('redriven');
    expect(await outputOf(id, run)).toEqual({ output: 'done' });
    expect(calls).toEqual(['charge', 'ship']);
    await expect(workflows.fork(database.db, id, { from: 'undo' })).rejects.toThrow("no step 'undo'");
  });

  test('of the last job of a flow asks for the same parents', async () => {
    const last: Run = async ({ step }) => {
      await call(step, 'a');
      return [await step.parents(child), await step.parentCounts()];
    };
    const children = [handle(child, ({ payload }) => payload * 10)];
    const { jobIds } = await workflows.enqueueFlow(database.db, (flow) => {
      flow.add(work, 1, { after: [flow.add(child, 4)] });
    });
    const id = Number(jobIds[1]);
    const ended = await outputOf(id, last, children);
    expect(ended).toMatchObject({ output: [[{ state: 'completed', output: 40 }], { total: 1 }] });
    const forked = await workflows.fork(database.db, id, { from: 'a' });
    expect(await outputOf(forked.id, last, children)).toEqual(ended);
    const again = await workflows.fork(database.db, forked.id, { from: 'a' });
    expect(await outputOf(again.id, last, children)).toEqual(ended);
  });

  test('of the last job of a flow is no part of it, also when that is redriven', async () => {
    const last: Run = async ({ step, job }) => {
      await call(step, 'a');
      if (job.metadata.forkedFrom !== undefined) await step.sleep('b', 3_600_000);
      return 'done';
    };
    const children = [
      handle(child, () => {
        throw new NonRetryableError('no');
      }),
    ];
    const { id, jobIds } = await workflows.enqueueFlow(database.db, (flow) => {
      flow.add(work, 1, { after: [flow.add(child, 4)], onFailure: 'run' });
    });
    await outputOf(Number(jobIds[1]), last, children);
    const { id: forked } = await workflows.fork(database.db, Number(jobIds[1]), { from: 'a' });
    const waits = async () => (await queue.find(database.db, forked))?.runAt;
    await drained(last, children);
    const wakesAt = await waits();
    expect(wakesAt).toBeInstanceOf(Date);
    expect(await workflows.flowOf(database.db, forked)).toBeUndefined();
    const graph = await workflows.flowGraph(database.db, id);
    expect(graph?.groups.map(({ firstId }) => firstId)).not.toContain(forked);
    expect(await workflows.redriveFlow(database.db, id)).toBe(1);
    expect(await waits()).toEqual(wakesAt);
  });

  test('is in the group of the other one, and claims are told of it', async () => {
    const grouped = createQueue({
      tables,
      workflows: workflowsIn(workflowTables),
      limits: limitsIn(control, { q: { groups: 'fair' } }),
    });
    for (const group of ['a', undefined]) {
      const { id } = await grouped.enqueue(database.db, work, 1, { group });
      await database.client`
        insert into queue_steps (job_id, queue, name, kind, fence, started_at, ended_at)
        values (${id}, 'q', 'one', 'run', 1, now(), now())`;
      await database.client`delete from queue_notes`;
      const forked = await grouped.workflows.fork(database.db, id, { from: 'one' });
      expect(await jobRow(database.client, forked.id)).toMatchObject({ group_key: group ?? '-' });
      expect(await database.client`select group_keys from queue_notes`).toEqual([
        { group_keys: [group ?? '-'] },
      ]);
      expect(await grouped.find(database.db, forked.id)).toMatchObject({ group: group ?? null });
    }
  });

  test('is there with its steps at the commit, and not before', async () => {
    const id = await enqueue();
    await outputOf(id, abc);
    calls = [];
    let looks = 0;
    atFaultPoints(async (at) => {
      if (at !== 'fork: inserted') return;
      looks++;
      expect(await claimJobs(database.db, queue.tables, claimOf({ kinds: ['work'] }))).toEqual([]);
    });
    const forked = await workflows.fork(database.db, id, { from: 'c' });
    atFaultPoints();
    expect(looks).toBe(1);
    expect(await outputOf(forked.id, abc)).toEqual({ output: [1, 'b', 'c'] });
    expect(calls).toEqual(['c']);
    const failing = database.db.transaction(async (tx) => {
      await workflows.fork(tx, id, { from: 'c' });
      tx.rollback();
    });
    await expect(failing).rejects.toThrow();
    expect((await queue.list(database.db, { kind: 'work' })).jobs).toHaveLength(2);
  });

  test('of a connection that dies leaves nothing', async () => {
    const id = await enqueue();
    await outputOf(id, abc);
    const [dying] = await database.connect(1);
    if (dying === undefined) throw new Error('no connection');
    await dying.client`begin`;
    const [backend] = await dying.client<[{ pid: number }]>`select pg_backend_pid() as pid`;
    // Without `transaction`, or it would begin and commit one of its own.
    const execute: typeof dying.db.execute = dying.db.execute.bind(dying.db);
    const open = { execute, selectDistinctOn: dying.db.selectDistinctOn };
    expect(await workflows.fork(open, id, { from: 'c' })).toMatchObject({ steps: 2 });
    await database.client`select pg_terminate_backend(${backend.pid}, 10000)`;
    expect(await database.client`select from queue_jobs`).toHaveLength(0);
    expect(await database.client`select from queue_steps where job_id <> ${id}`).toHaveLength(0);
  });
});

describe('a redrive from a step', () => {
  test('does it again, and all after it, with one call', async () => {
    let isBroken = true;
    const run: Run = async ({ step }) => {
      await call(step, 'a');
      await call(step, 'b');
      await call(step, 'c', isBroken ? new Error('broken') : 'c');
      return 'done';
    };
    const id = await enqueue();
    expect(await outputOf(id, run)).toMatchObject({ state: 'discarded' });
    isBroken = false;
    expect(await workflows.redrive(database.db, id, { from: 'b' })).toBe('redriven');
    expect(await queue.find(database.db, id)).toMatchObject({ state: 'due', attempt: 0 });
    expect(await outputOf(id, run)).toEqual({ output: 'done' });
    expect(calls).toEqual(['a', 'b', 'c', 'b', 'c']);
    expect(await workflows.redrive(database.db, id, { from: 'b' })).toBe('completed');
    expect(await workflows.redrive(database.db, id + 1_000, { from: 'b' })).toBe('gone');
  });

  test('of a cancelled job, and of one that waits, which is then due', async () => {
    const run: Run = async ({ step }) => {
      await call(step, 'a');
      return await step.waitForSignal(answer);
    };
    const id = await enqueue();
    await drained(run);
    expect(await stateOf(id)).toBe('waiting');
    expect(await workflows.redrive(database.db, id, { from: 'a' })).toBe('redriven');
    expect(await stateOf(id)).toBe('due');
    await drained(run);
    expect(calls).toEqual(['a', 'a']);
    await queue.cancel(database.db, id);
    expect(await workflows.redrive(database.db, id, { from: 'a' })).toBe('redriven');
    await drained(run);
    expect(calls).toEqual(['a', 'a', 'a']);
    expect(await stateOf(id)).toBe('waiting');
  });

  test('receives again what the forgotten steps had received', async () => {
    let isBroken = true;
    const run: Run = async ({ step }) => {
      const got = await step.waitForSignal(answer);
      await call(step, 'b', isBroken ? new Error('no') : 1);
      return got;
    };
    const id = await enqueue();
    await workflows.signal(database.db, { id }, answer, 5);
    expect(await outputOf(id, run)).toMatchObject({ state: 'discarded' });
    isBroken = false;
    expect(await workflows.redrive(database.db, id, { from: 'answer' })).toBe('redriven');
    expect(await outputOf(id, run)).toEqual({ output: 5 });
  });

  /** Waits as `kept` first, and in its next run as `later` before that: `later` gets the first signal. */
  function twoWaits(end: () => unknown): Run {
    let isFirst = true;
    return async ({ step }) => {
      const wait = (name: string) => step.waitForSignal(answer, { name });
      if (isFirst) {
        isFirst = false;
        return await wait('kept');
      }
      const [later, kept] = await Promise.all([wait('later'), wait('kept')]);
      await call(step, 'end', end());
      return [later, kept, await wait('last')];
    };
  }

  test('receives each signal once, whatever the steps that are left had received', async () => {
    let isBroken = true;
    const run = twoWaits(() => (isBroken ? new Error('no') : 1));
    const id = await enqueue();
    await drained(run);
    await workflows.signal(database.db, { id }, answer, 1);
    await workflows.signal(database.db, { id }, answer, 2);
    expect(await outputOf(id, run)).toMatchObject({ state: 'discarded' });
    const steps = await workflows.steps(database.db, id);
    expect(steps.map(({ name, output }) => [name, output])).toEqual([
      ['kept', 2],
      ['later', 1],
      ['end', undefined],
    ]);
    isBroken = false;
    expect(await workflows.redrive(database.db, id, { from: 'later' })).toBe('redriven');
    await workflows.signal(database.db, { id }, answer, 3);
    expect(await outputOf(id, run)).toEqual({ output: [1, 2, 3] });
  });

  test.each(['redrive', 'fork'] as const)('%s finds a child that was put back and lives', async (method) => {
    let isBroken = true;
    const children = [
      handle(child, ({ payload }) => {
        if (isBroken) throw new NonRetryableError('no');
        return payload * 10;
      }),
    ];
    const run: Run = async ({ step }) => await step.waitForJob(await step.enqueue('kid', child, 4));
    const id = await enqueue();
    expect(await outputOf(id, run, children)).toMatchObject({ state: 'discarded' });
    const [kid] = await database.client`select job_id from queue_results where kind = 'child'`;
    expect(await queue.redrive(database.db, Number(kid?.job_id))).toMatchObject({ redriven: 1 });
    await database.client`update queue_batches set ended_at = ended_at - interval '1 day'`;
    await deleteLeftBatches(database.db, { ...tables, ...workflowTables }, { after: 0, until: undefined });
    isBroken = false;
    const became = await workflows[method](database.db, id, { from: 'kid: end' });
    const goesOn = typeof became === 'string' ? id : became.id;
    // It waits for the child while that has not ended.
    await drained(run);
    expect(await stateOf(goesOn)).toBe('waiting');
    expect(await outputOf(goesOn, run, children)).toEqual({ output: 40 });
  });

  test('counts what is to be received again as not received', async () => {
    const other = defineSignal('other', unvalidated<number>());
    const run: Run = async ({ step }) => {
      const got = [await step.waitForSignal(answer, { name: 'kept' })];
      await call(step, 'between');
      got.push(await step.waitForSignal(answer), await step.waitForSignal(other));
      await call(step, 'end', new Error('no'));
      return got;
    };
    const id = await enqueue();
    for (const value of [1, 2]) await workflows.signal(database.db, { id }, answer, value);
    await workflows.signal(database.db, { id }, other, 3);
    expect(await outputOf(id, run)).toMatchObject({ state: 'discarded' });
    const counts = async () =>
      (await workflows.mailboxes(database.db, id)).map(({ signal, sent, received }) => [
        signal,
        sent,
        received,
      ]);
    expect(await counts()).toEqual([
      ['answer', 2, 2],
      ['other', 1, 1],
    ]);
    expect(await workflows.redrive(database.db, id, { from: 'between' })).toBe('redriven');
    expect(await counts()).toEqual([
      ['answer', 2, 1],
      ['other', 1, 0],
    ]);
    // As many as a job may leave unreceived: those that are to be received again are among them.
    for (let n = 1; n < 1_000; n++) await workflows.signal(database.db, { id }, other, n);
    await expect(workflows.signal(database.db, { id }, other, 0)).rejects.toThrow(MailboxFullError);
  });

  test('beside an open transaction that has sent a signal waits for nothing, and loses none', async () => {
    const run = twoWaits(() => 1);
    const id = await enqueue();
    await drained(run);
    await workflows.signal(database.db, { id }, answer, 1);
    await workflows.signal(database.db, { id }, answer, 2);
    await drained(run);
    expect(await stateOf(id)).toBe('waiting');
    await database.db.transaction(async (sender) => {
      await workflows.signal(sender, { id }, answer, 3);
      // It holds the mailbox and the job's row by now.
      expect(await workflows.redrive(database.db, id, { from: 'later' })).toBe('locked');
      await workflows.signal(sender, { id }, answer, 4);
    });
    await database.db.transaction(async (tx) => {
      expect(await workflows.redrive(tx, id, { from: 'later' })).toBe('redriven');
      const sending = workflows.signal(database.db, { id }, answer, 5);
      await until(async () => {
        const [row] = await database.client`
          select count(*)::int as n from pg_stat_activity
          where datname = current_database() and wait_event_type = 'Lock'
            and query like '%queue_mailboxes%'`;
        return row?.n === 1;
      });
      // The sender waits for the mailbox, and holds nothing: this transaction may write about the job.
      expect(await workflows.signal(tx, { id }, answer, 6)).toBe('sent');
      void sending.catch(() => undefined);
    });
    expect(await outputOf(id, run)).toEqual({ output: [1, 2, 3] });
    expect(await workflows.mailboxes(database.db, id)).toMatchObject([
      { signal: 'answer', sent: 6, received: 3 },
    ]);
  });

  test('beside a transaction that holds the mailbox alone lets it go on to the job', async () => {
    const run: Run = async ({ step }) => {
      const got = await step.waitForSignal(answer);
      await step.sleep('a day', 86_400_000);
      return [got, await step.waitForSignal(answer, { name: 'again' })];
    };
    const id = await enqueue();
    await workflows.signal(database.db, { id }, answer, 1);
    await drained(run);
    await database.db.transaction(async (sender) => {
      // The job sleeps, so this does not wake it.
      await workflows.signal(sender, { id }, answer, 2);
      let became: string | undefined;
      const redriving = workflows.redrive(database.db, id, { from: 'answer' }).then((result) => {
        became = result;
      });
      // As a cancel does, and a signal that the job waits for.
      expect(await queue.runNow(sender, id)).toEqual({ due: true });
      await redriving;
      expect(became).toBe('locked');
    });
    expect(await workflows.redrive(database.db, id, { from: 'answer' })).toBe('redriven');
    await drained(run);
    const [first] = await workflows.steps(database.db, id);
    expect(first).toMatchObject({ name: 'answer', output: 1 });
  });

  test('leaves a job alone that runs, whose key is taken, or that has no such step', async () => {
    let goOn = () => {};
    const gate = new Promise<void>((resolve) => {
      goOn = resolve;
    });
    const worker = createWorker(database.db, {
      queue,
      handlers: [
        handle(work, async ({ step }) => {
          await call(step, 'a');
          await gate;
          await call(step, 'b', new Error('no'));
        }),
      ],
      log: false,
    });
    onTestFinished(() => worker.stop());
    await worker.start();
    const id = await enqueue(1, { uniqueKey: 'k' });
    await until(async () => (await workflows.steps(database.db, id)).length === 1);
    expect(await workflows.redrive(database.db, id, { from: 'a' })).toBe('running');
    goOn();
    await queue.waitFor(database.db, work, id);
    await worker.stop();
    await expect(workflows.redrive(database.db, id, { from: 'z' })).rejects.toThrow(
      `redrive: job ${id} has no step 'z': it has 'a', 'b'`,
    );
    const next = await enqueue(1, { uniqueKey: 'k' });
    expect(await workflows.redrive(database.db, id, { from: 'b' })).toBe('duplicate');
    expect(await workflows.steps(database.db, id)).toHaveLength(2);
    await queue.cancel(database.db, next);
    expect(await workflows.redrive(database.db, id, { from: 'b' })).toBe('redriven');
  });

  test('of one that is about to end as cancelled changes nothing', async () => {
    const { db } = database;
    const run: Run = async ({ step }) => {
      await call(step, 'a');
      await step.waitForSignal(answer);
    };
    const flow = await workflows.enqueueFlow(db, (flow) => void flow.add(work, 1));
    const [id = 0] = flow.jobIds;
    await drained(run);
    await queue.pause(db, 'q');
    onTestFinished(async () => void (await queue.resume(db, 'q')));
    await workflows.cancelFlow(db, flow.id);
    // Counts what is to end, and claims nothing.
    await drained(run);
    expect(await jobRow(database.client, id)).toMatchObject({ cancel_reason: expect.any(String) });
    expect(await workflows.redrive(db, id, { from: 'a' })).toBe('running');
    expect(await workflows.steps(db, id)).toHaveLength(2);
  });

  test('at the same time as another: one puts it back, the other finds it back or locked', async () => {
    const run: Run = async ({ step }) => void (await call(step, 'a', new Error('no')));
    const id = await enqueue();
    await outputOf(id, run);
    await database.db.transaction(async (tx) => {
      expect(await workflows.redrive(tx, id, { from: 'a' })).toBe('redriven');
      expect(await workflows.redrive(database.db, id, { from: 'a' })).toBe('locked');
      expect(await queue.redrive(database.db, id)).toEqual({ redriven: 0, duplicates: 0 });
    });
    expect(await stateOf(id)).toBe('due');
    expect(await workflows.steps(database.db, id)).toEqual([]);
  });

  test('at the same time as a claim: a job that has just begun keeps its steps', async () => {
    const run: Run = async ({ step }) => {
      await call(step, 'a');
      await step.waitForSignal(answer);
    };
    const id = await enqueue();
    await drained(run);
    await workflows.signal(database.db, { id }, answer, 1);
    atFaultPoints(async (at) => {
      if (at !== 'redrive: found') return;
      atFaultPoints();
      expect(await claimJobs(database.db, queue.tables, claimOf({ kinds: ['work'] }))).toHaveLength(1);
    });
    expect(await workflows.redrive(database.db, id, { from: 'a' })).toBe('running');
    expect(await workflows.steps(database.db, id)).toHaveLength(2);
    expect(await jobRow(database.client, id)).toMatchObject({ worker_id: 1 });
  });
});
