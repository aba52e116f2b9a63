import {
  createQueue,
  createWorker,
  defineJob,
  defineSignal,
  fixedBackoff,
  handlersFor,
  isFinal,
  NonRetryableError,
  unvalidated,
  type Worker,
  workflowsIn,
} from 'drizzle-queue';
import * as workflowTables from 'drizzle-queue/schema/workflows';
import { beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { z } from 'zod';
import { clearTables, tables } from '../queries/support/jobs.ts';
import { addWorkflowTables, clearWorkflowTables } from '../support/control-tables.ts';
import { gate } from '../support/gate.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { noteUnhandled } from '../support/unhandled.ts';
import { until } from '../support/until.ts';

const database = useTestDatabase({ max: 10 });
const queue = createQueue({ tables, workflows: workflowsIn(workflowTables) });
const { handle } = handlersFor<typeof database.db, typeof queue>();
const work = defineJob('work', { queue: 'q', backoff: fixedBackoff(0), maxAttempts: 3 });
const failing = defineJob('failing', { queue: 'q' });
const approval = defineSignal('approval');

beforeAll(() => addWorkflowTables(database));
beforeEach(async () => {
  await clearTables(database.client);
  await clearWorkflowTables(database);
});

type Run = Parameters<typeof handle<typeof work>>[1];
type Context = Parameters<Run>[0];

async function start(run: Run, options: { readonly shutdownTimeoutMs?: number } = {}): Promise<Worker> {
  const handlers = [
    handle(work, run),
    handle(failing, () => Promise.reject(new NonRetryableError('broken'))),
  ];
  const worker = createWorker(database.db, { queue, handlers, queues: { q: {} }, log: false, ...options });
  onTestFinished(() => worker.stop());
  // What the database refuses in these tests is no news.
  worker.on('error', () => undefined);
  await worker.start();
  return worker;
}

const stateOf = async (id: number) => (await queue.find(database.db, id))?.state;
const stepsOf = async (id: number) => await queue.workflows.steps(database.db, id);
const namesOf = async (id: number) => (await stepsOf(id)).map(({ name }) => name);

interface Way {
  readonly way: string;
  /** Begins the wait that fails. */
  begin(context: Context): Promise<{ readonly wait: Promise<unknown>; isOver?(): Promise<boolean> }>;
  readonly error: string;
}

const ways: Way[] = [
  {
    way: 'has the name of another step',
    begin: async ({ step }) => {
      await step.run('nap', () => 1);
      return { wait: step.sleep('nap', 86_400_000) };
    },
    error: 'DuplicateStepError',
  },
  {
    way: 'has no valid length',
    begin: async ({ step }) => ({ wait: step.sleep('nap', Number.NaN) }),
    error: 'RangeError',
  },
  {
    way: 'was a step of another kind',
    begin: async ({ step, job }) => {
      if (job.errors.length > 0) return { wait: step.sleep('nap', 86_400_000) };
      await step.run('nap', () => 1);
      throw new Error('deployed anew');
    },
    error: 'StepMismatchError',
  },
  {
    way: 'cannot be recorded',
    begin: async ({ step }) => {
      await database.client.unsafe(`
        create function refuse() returns trigger language plpgsql as $$ begin
          raise exception 'no naps' using errcode = '23514';
        end $$;
        create trigger refuse before insert on queue_steps
        for each row when (new.name = 'nap') execute function refuse();
      `);
      return { wait: step.sleep('nap', 86_400_000) };
    },
    error: 'PostgresError',
  },
  {
    way: 'receives what does not fit its schema',
    begin: async ({ step, job }) => {
      await queue.workflows.signal(database.db, job, defineSignal('even', unvalidated<number>()), 1);
      const wait = step.waitForSignal(defineSignal('even', z.number().multipleOf(2)));
      return { wait, isOver: async () => (await stepsOf(job.id)).some((one) => one.name === 'even') };
    },
    error: 'InvalidSignalError',
  },
  {
    way: 'is for a child that has failed',
    begin: async ({ step, job }) => {
      const child = await step.enqueue('child', failing);
      await step.allEnded('ended', [child]);
      const isOver = async () => (await stepsOf(job.id)).some(({ error }) => error !== null);
      return { wait: step.waitForJob(child), isOver };
    },
    error: 'ChildFailedError',
  },
  {
    way: 'begins beside undoAll',
    begin: async ({ step }) => {
      const undo = gate();
      let isUndoing = false;
      const options = {
        undo: async () => {
          isUndoing = true;
          await undo.opened;
        },
      };
      await step.run('booking', options, () => 1);
      const undone = step.undoAll(new Error('never mind'));
      await until(() => isUndoing);
      const wait = step.sleep('nap', 86_400_000);
      undo.open();
      await undone;
      return { wait };
    },
    error: 'NonRetryableError',
  },
  {
    way: 'finds that the lease is lost',
    begin: async ({ step, job }) => {
      await database.client`update queue_jobs set fence = fence + 1 where id = ${job.id}`;
      return { wait: step.sleep('nap', 86_400_000) };
    },
    error: 'LeaseLostError',
  },
];

describe('a wait that fails while nothing awaits it ends no process', () => {
  test.each(ways)('where it $way', async ({ begin, error }) => {
    const unhandled = noteUnhandled();
    onTestFinished(async () => void (await database.client`drop function if exists refuse cascade`));
    const failures: string[] = [];
    await start(async (context) => {
      const { step } = context;
      const { wait, isOver = () => true } = await begin(context);
      // It is recorded after the wait has failed.
      for (const name of ['one', 'two']) await step.run(name, () => until(isOver)).catch(() => undefined);
      await wait.catch((error) => failures.push(error.name));
    });
    await queue.enqueue(database.db, work);
    await until(() => failures.length > 0);
    expect(failures).toEqual([error]);
    expect(unhandled).toEqual([]);
  });

  test('where its job was cancelled before', async () => {
    const unhandled = noteUnhandled();
    const undone: string[] = [];
    await start(async ({ step, signal, job }) => {
      try {
        await step.run('one', { undo: () => void undone.push('one') }, () => 1);
        const ran = step.run('two', () => until(() => signal.aborted));
        const asked = step.waitForSignal(approval);
        await until(async () => (await namesOf(job.id)).includes('approval'));
        await until(() => signal.aborted);
        const slept = step.sleep('a day', 86_400_000);
        await asked;
        await slept;
        await ran;
      } catch (error) {
        if (isFinal(error)) await step.undoAll(error);
        throw error;
      }
    });
    const { id } = await queue.enqueue(database.db, work);
    await until(async () => (await namesOf(id)).includes('approval'));
    await queue.cancel(database.db, id);
    await until(async () => (await stateOf(id)) === 'cancelled');
    expect(undone).toEqual(['one']);
    expect(unhandled).toEqual([]);
  });

  test('where its worker stops', async () => {
    const unhandled = noteUnhandled();
    let isRunning = false;
    const failures: unknown[] = [];
    const run: Run = async ({ step, signal }) => {
      isRunning = true;
      await until(() => signal.aborted);
      const slept = step.sleep('nap', 86_400_000);
      void step.waitForSignal(approval);
      // Nothing that is sent to the database is answered before the waits have failed.
      await database.client`select 1`;
      await slept.catch((error) => failures.push(error));
    };
    const worker = await start(run, { shutdownTimeoutMs: 0 });
    await queue.enqueue(database.db, work);
    await until(() => isRunning);
    await worker.stop();
    await until(() => failures.length > 0);
    expect(unhandled).toEqual([]);
  });

  test('where its job was undone by an earlier run of its handler', async () => {
    const unhandled = noteUnhandled();
    const undone: string[] = [];
    let runs = 0;
    await start(async ({ step, job }) => {
      const isFirst = ++runs === 1;
      const asked = step.waitForSignal(approval);
      try {
        await step.run('book', { undo: () => void undone.push('book') }, () => 1);
        await step.run('ship', { attempts: 1 }, () => Promise.reject(new Error('no courier')));
        await asked;
      } catch (error) {
        await step.undoAll(error);
        // Left behind meanwhile.
        if (isFirst) await until(async () => (await stateOf(job.id)) === 'discarded');
        throw error;
      }
    });
    const { id } = await queue.enqueue(database.db, work);
    await until(async () => (await stateOf(id)) === 'discarded');
    expect(runs).toBe(2);
    expect(undone).toEqual(['book']);
    expect(unhandled).toEqual([]);
  });
});
