import {
  createQueue,
  createWorker,
  defineJob,
  defineSignal,
  fixedBackoff,
  handlersFor,
  NonRetryableError,
  unvalidated,
  type Worker,
  workflowsIn,
} from 'drizzle-queue';
import * as workflowTables from 'drizzle-queue/schema/workflows';
import { beforeAll, beforeEach, expect, onTestFinished, test } from 'vitest';
import { clearTables, tables } from '../queries/support/jobs.ts';
import { addWorkflowTables, clearWorkflowTables } from '../support/control-tables.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';

const database = useTestDatabase({ max: 15 });
const queue = createQueue({ tables, workflows: workflowsIn(workflowTables) });
const { handle } = handlersFor<typeof database.db, typeof queue>();
const work = defineJob('work', {
  queue: 'q',
  payload: unvalidated<number>(),
  output: unvalidated<unknown>(),
  backoff: fixedBackoff(0),
  maxAttempts: 3,
});
const approval = defineSignal('approval', unvalidated<string>());

beforeAll(() => addWorkflowTables(database));
beforeEach(async () => {
  await clearTables(database.client);
  await clearWorkflowTables(database);
  calls.length = 0;
});

type Run = Parameters<typeof handle<typeof work>>[1];
type Step = Parameters<Run>[0]['step'];

const calls: string[] = [];
/** A step that says when it is run, and by which version of the code. */
const does = (version: string, step: Step, name: string) =>
  step.run(name, () => {
    calls.push(`${version} ${name}`);
    return `${name} by ${version}`;
  });

async function deploy(run: Run): Promise<Worker> {
  const worker = createWorker(database.db, { queue, handlers: [handle(work, run)], log: false });
  onTestFinished(() => worker.stop());
  await worker.start();
  return worker;
}

const outputOf = async (id: number) => {
  const record = await queue.waitFor(database.db, work, id, { timeoutMs: 60_000 });
  return record.state === 'completed' ? record.output : record.errors;
};
const namesOf = async (id: number) =>
  (await queue.workflows.steps(database.db, id)).map(({ name }) => name).sort();

const old: Run = async ({ step }) => {
  const a = await does('old', step, 'a');
  const b = await does('old', step, 'b');
  const removed = await does('old', step, 'removed');
  const by = await step.waitForSignal(approval);
  return [a, b, removed, by, await does('old', step, 'c')];
};

/** The two first steps are the other way round, one is new, one is gone, and the last one has another name. */
const next: Run = async ({ step }) => {
  const b = await does('next', step, 'b');
  const a = await does('next', step, 'a');
  const inserted = await does('next', step, 'inserted');
  const by = await step.waitForSignal(approval);
  return [a, b, inserted, by, await does('next', step, 'c, renamed')];
};

test('a job that waits goes on under code whose steps were moved, inserted, removed and renamed', async () => {
  const worker = await deploy(old);
  const { id } = await queue.enqueue(database.db, work, 1);
  await until(async () => (await queue.find(database.db, id))?.state === 'waiting');
  await worker.stop();
  await deploy(next);
  await queue.workflows.signal(database.db, { id }, approval, 'Ada');
  expect(await outputOf(id)).toEqual([
    ...['a by old', 'b by old', 'inserted by next'],
    ...['Ada', 'c, renamed by next'],
  ]);
  expect(calls).toEqual(['old a', 'old b', 'old removed', 'next inserted', 'next c, renamed']);
  // The row of the step that is gone stays.
  expect(await namesOf(id)).toEqual(['a', 'approval', 'b', 'c, renamed', 'inserted', 'removed']);
});

test('a step that was renamed is done again when its job is tried again', async () => {
  const worker = await deploy(async ({ step }) => {
    await does('old', step, 'charge');
    throw new NonRetryableError('in the middle');
  });
  const { id } = await queue.enqueue(database.db, work, 1);
  await outputOf(id);
  await worker.stop();
  await queue.redrive(database.db, { ids: [id] });
  await deploy(async ({ step }) => await does('next', step, 'charge again'));
  expect(await outputOf(id)).toBe('charge again by next');
  expect(calls).toEqual(['old charge', 'next charge again']);
});

const stateOf = async (id: number) => (await queue.find(database.db, id))?.state;
const callNow = async () => void (await database.client`update queue_jobs set run_at = now()`);
const limited = (timeoutMs: number): Run => {
  return async ({ step }) => {
    calls.push(`up to ${timeoutMs}`);
    return (await step.waitForSignal(approval, { timeoutMs })) ?? 'none';
  };
};
const unlimited: Run = async ({ step }) => {
  calls.push('unlimited');
  return await step.waitForSignal(approval);
};

test('a wait for a signal whose limit a deploy takes away waits on without one', async () => {
  const worker = await deploy(limited(3_600_000));
  const { id } = await queue.enqueue(database.db, work, 1);
  await until(async () => (await queue.workflows.steps(database.db, id)).length === 1);
  await worker.stop();
  await database.client`update queue_steps set until = now() - interval '1 second'`;
  calls.length = 0;
  await callNow();
  await deploy(unlimited);
  await until(async () => calls.length > 0 && (await stateOf(id)) === 'waiting');
  await queue.workflows.signal(database.db, { id }, approval, 'Ada');
  expect(await outputOf(id)).toBe('Ada');
});

test('a wait for a signal to which a deploy adds a limit has it from its next run on, or once it is redriven', async () => {
  const worker = await deploy(unlimited);
  const [called = 0, redriven = 0] = (
    await queue.enqueueMany(database.db, work, [{ payload: 1 }, { payload: 2 }])
  ).map(({ id }) => id);
  for (const id of [called, redriven]) await until(async () => (await stateOf(id)) === 'waiting');
  await worker.stop();
  await deploy(limited(200));
  await database.client`update queue_jobs set run_at = now() where id = ${called}`;
  expect(await outputOf(called)).toBe('none');
  expect(await stateOf(redriven)).toBe('waiting');
  expect(await queue.workflows.redrive(database.db, redriven, { from: 'approval' })).toBe('redriven');
  expect(await outputOf(redriven)).toBe('none');
});

test('a wait for a signal keeps its first limit through deploys that take it away, change it and bring it back', async () => {
  const untilOf = async (id: number) => (await queue.workflows.steps(database.db, id))[0]?.until;
  const { id } = await queue.enqueue(database.db, work, 1);
  const first = await deploy(limited(3_600_000));
  await until(async () => (await stateOf(id)) === 'scheduled');
  const limit = await untilOf(id);
  await first.stop();
  for (const run of [unlimited, limited(1), unlimited, limited(3_600_000)]) {
    calls.length = 0;
    await callNow();
    const worker = await deploy(run);
    const state = run === unlimited ? 'waiting' : 'scheduled';
    await until(async () => calls.length > 0 && (await stateOf(id)) === state);
    expect(await untilOf(id)).toEqual(limit);
    await worker.stop();
  }
  await database.client`update queue_steps set until = now()`;
  await callNow();
  await deploy(limited(3_600_000));
  expect(await outputOf(id)).toBe('none');
});

test('two versions that run side by side pass jobs to each other: each name is done once', async () => {
  const TURNS = 6;
  /** Sleeps between any two steps, so that either version may go on. */
  const inTurns = (version: string, names: readonly string[]): Run => {
    return async ({ step }) => {
      const outputs: string[] = [];
      for (const name of names) {
        outputs.push(await does(version, step, name));
        await step.sleep(`after ${name}`, 5);
      }
      return outputs;
    };
  };
  const names = Array.from({ length: TURNS }, (_, at) => `step-${at}`);
  await deploy(inTurns('old', [...names, 'removed']));
  await deploy(inTurns('next', [...names.toReversed(), 'inserted']));
  const entries = Array.from({ length: 30 }, (_, payload) => ({ payload }));
  const ids = (await queue.enqueueMany(database.db, work, entries)).map(({ id }) => id);
  const versions = new Set<string>();
  for (const id of ids) {
    const output = await outputOf(id);
    expect(output).toHaveLength(TURNS + 1);
    for (const text of output as string[]) versions.add(text.split(' by ')[1] ?? '');
    // It has ended under one of the two; the other may have done what this one does not know.
    expect(await namesOf(id)).toEqual(expect.arrayContaining(names));
    const [row] = await database.client`
      select count(*)::int as done from queue_steps where job_id = ${id} and kind = 'run'`;
    expect([TURNS + 1, TURNS + 2]).toContain(row?.done);
  }
  expect(versions).toEqual(new Set(['old', 'next']));
  const ofNames = calls.filter((call) => names.includes(call.split(' ')[1] ?? ''));
  expect(ofNames).toHaveLength(TURNS * ids.length);
});

test('a step of another kind stops the version that has it alone: the one before goes on, and one that renames it', async () => {
  const begun = new Set<number>();
  const refused = new Set<number>();
  /** Leaves each job to the version with the changed step until that has refused it. */
  const afterChanged = (run: Run): Run => {
    return async (context) => {
      const { id } = context.job;
      if (begun.has(id) && !refused.has(id)) throw new Error('the other version comes first');
      begun.add(id);
      return await run(context);
    };
  };
  const oldWorker = await deploy(
    afterChanged(async ({ step }) => {
      const a = await does('old', step, 'a');
      return [a, await step.waitForSignal(approval), await does('old', step, 'b')];
    }),
  );
  const entries = [1, 2].map((payload) => ({ payload, maxAttempts: 10_000 }));
  const [first = 0, second = 0] = (await queue.enqueueMany(database.db, work, entries)).map(({ id }) => id);
  for (const id of [first, second])
    await until(async () => (await queue.find(database.db, id))?.state === 'waiting');
  await deploy(async ({ job, step }) => {
    await step.sleep('a', 5).catch((error: Error) => {
      if (error.name === 'StepMismatchError') refused.add(job.id);
      throw error;
    });
    return [await step.waitForSignal(approval), await does('changed', step, 'b')];
  });
  const errors = async (id: number) => (await queue.find(database.db, id))?.errors ?? [];
  const refusal = {
    name: 'StepMismatchError',
    message:
      "The step 'a' of 'work' was recorded as 'run' and is 'sleep' in the code. " +
      'Rename it in the code: a new name is a new step',
  };

  await queue.workflows.signal(database.db, { id: first }, approval, 'Ada');
  expect(await outputOf(first)).toEqual(['a by old', 'Ada', 'b by old']);
  expect(await errors(first)).toContainEqual(expect.objectContaining(refusal));

  await oldWorker.stop();
  await deploy(
    afterChanged(async ({ step }) => {
      await step.sleep('a, slept', 5);
      return [await step.waitForSignal(approval), await does('renamed', step, 'b')];
    }),
  );
  await queue.workflows.signal(database.db, { id: second }, approval, 'Bob');
  expect(await outputOf(second)).toEqual(['Bob', 'b by renamed']);
  expect(await errors(second)).toContainEqual(expect.objectContaining(refusal));
  expect(calls.sort()).toEqual(['old a', 'old a', 'old b', 'renamed b']);
});
