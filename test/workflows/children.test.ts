import {
  type Child,
  ChildFailedError,
  createQueue,
  createWorker,
  defineJob,
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
import { afterEach, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { newJob } from '../../src/core/job/new-job.ts';
import { sqlStateOf } from '../../src/core/sql/executor.ts';
import { atFaultPoints } from '../../src/core/sql/fault-point.ts';
import { wakeAllWaiters } from '../../src/features/batches/worker/move-on.ts';
import {
  type ChildrenToInsert,
  enqueueChildren,
} from '../../src/features/workflows/queries/enqueue-children.ts';
import { clearTables, tables } from '../queries/support/jobs.ts';
import { addWorkflowTables, clearWorkflowTables } from '../support/control-tables.ts';
import { gate } from '../support/gate.ts';
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
const other = defineJob('other', { queue: 'q', output: unvalidated<string>() });

beforeAll(() => addWorkflowTables(database));
beforeEach(async () => {
  await clearTables(database.client);
  await clearWorkflowTables(database);
});
afterEach(() => atFaultPoints());

type Run = Parameters<typeof handle<typeof parent>>[1];

/** A child of 13 is discarded; the others return ten times their payload. */
const children = [
  handle(child, async ({ payload }) => {
    if (payload === 13) throw new NonRetryableError('thirteen');
    return payload * 10;
  }),
  handle(other, async () => 'other'),
];

async function start(run: Run, handlers = children): Promise<Worker> {
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

async function recordOf(id: number) {
  return await queue.waitFor(database.db, parent, id, { timeoutMs: 100_000 });
}
async function outputOf(id: number): Promise<unknown> {
  const record = await recordOf(id);
  return record.state === 'completed' ? record.output : record;
}

/** Batches are then counted anew. */
async function anHourPasses(): Promise<void> {
  await database.client`update queue_batches set created_at = created_at - interval '1 hour'`;
}

async function openBatches(): Promise<number> {
  const [row] = await database.client`select count(*)::int as n from queue_batches where ended_at is null`;
  return row?.n;
}

/** Whether a job waits for this batch. */
async function waitedFor(batchId: number): Promise<boolean> {
  const [row] = await database.client`select waiting from queue_batches where id = ${batchId}`;
  return row?.waiting !== null;
}

describe('a child', () => {
  test('is waited for, however long the name of its step', async () => {
    const name = 'n'.repeat(200);
    await start(async ({ step }) => await step.waitForJob(await step.enqueue(name, child, 4)));
    const id = await enqueue();
    expect(await outputOf(id)).toBe(40);
    const forked = await queue.workflows.fork(database.db, id, { from: `${name}: end` });
    expect(await outputOf(forked.id)).toBe(40);
  });

  test('is waited for twice in one wait, and has two places in what that returns', async () => {
    await start(async ({ step }) => {
      const one = await step.enqueue('one', child, 1);
      const two = await step.enqueue('two', child, 2);
      const outputs = await step.all('all', [one, two, one]);
      const ends = await step.allEnded('ends', [two, two]);
      return { outputs, ends: ends.map(({ id }) => id === two.id) };
    });
    expect(await outputOf(await enqueue())).toEqual({ outputs: [10, 20, 10], ends: [true, true] });
  });

  test('returns its output to the job that waits for it', async () => {
    let runs = 0;
    const ended = handle(child, async ({ payload }) => {
      // Otherwise the parent may find that it has ended, and not wait.
      await until(async () => (await queue.find(database.db, id))?.state === 'waiting');
      return payload * 10;
    });
    await start(
      async ({ step }) => {
        runs++;
        const one = await step.enqueue('one', child, 4);
        return [await step.waitForJob(one), one.id > 0];
      },
      [ended],
    );
    const id = await enqueue();
    expect(await outputOf(id)).toEqual([40, true]);
    expect(runs).toBe(2);
    expect(await queue.workflows.steps(database.db, id)).toMatchObject([
      { name: 'one', kind: 'enqueue', output: { ids: [expect.any(Number)] } },
      { name: 'one: end', kind: 'wait', output: 40 },
    ]);
    expect((await queue.find(database.db, id))?.attempt).toBe(1);
    expect(await openBatches()).toBe(0);
  });

  test('is enqueued once, however often the handler runs', async () => {
    let runs = 0;
    await start(async ({ step }) => {
      const one = await step.enqueue('one', child, 4);
      if (++runs < 4) throw new Error('again');
      return await step.waitForJob(one);
    });
    expect(await outputOf(await enqueue())).toBe(40);
    const [row] = await database.client`
      select count(*)::int as n from queue_results where kind = 'child'`;
    expect(row?.n).toBe(1);
  });

  test('that fails for good is an error that says which', async () => {
    let caught: unknown;
    await start(async ({ step }) => {
      try {
        return await step.waitForJob(await step.enqueue('one', child, 13));
      } catch (error) {
        caught = error;
        throw error;
      }
    });
    expect(await recordOf(await enqueue())).toMatchObject({ state: 'discarded', attempt: 1 });
    expect(caught).toBeInstanceOf(ChildFailedError);
    expect(caught).toMatchObject({
      kind: 'child',
      state: 'discarded',
      reason: 'thirteen',
      message: expect.stringMatching(/^Job \d+ \('child'\) is discarded: thirteen$/),
    });
  });

  test('that has failed fails the same way in every later run', async () => {
    const messages: string[] = [];
    await start(async ({ step }) => {
      const one = await step.enqueue('one', child, 13);
      await step.waitForJob(one).catch((error: Error) => messages.push(error.message));
      await database.client`delete from queue_results where job_id = ${one.id}`;
      if (messages.length < 3) throw new Error('again');
      return 'fallback';
    });
    expect(await outputOf(await enqueue())).toBe('fallback');
    expect(new Set(messages).size).toBe(1);
  });

  test('whose result is gone is not waited for', async () => {
    let runs = 0;
    await start(async ({ step }) => {
      const one = await step.enqueue('one', child, 4);
      if (++runs === 1) {
        await until(async () => (await queue.find(database.db, one.id))?.state === 'completed');
        await database.client`delete from queue_results where job_id = ${one.id}`;
      }
      return await step.waitForJob(one).catch((error: ChildFailedError) => [error.state, error.reason]);
    });
    expect(await outputOf(await enqueue())).toEqual([
      'gone',
      'its result is gone, so how it ended is not known',
    ]);
  });

  test('is cancelled with the job that has enqueued it, unless it is detached', async () => {
    const ids: number[] = [];
    await start(
      async ({ step }) => {
        const one = await step.enqueue('one', child, 1);
        const free = await step.enqueue('free', child, 2, { detached: true });
        const late = await step.enqueue('late', child, 3, { delayMs: 3_600_000 });
        ids.push(one.id, free.id, late.id);
        return await step.waitForJob(one);
      },
      [
        handle(child, async ({ signal, payload }) => {
          if (payload === 2) return 2;
          await new Promise((resolve) => signal.addEventListener('abort', resolve));
          throw signal.reason;
        }),
      ],
    );
    const id = await enqueue();
    await until(async () => (await queue.find(database.db, id))?.state === 'waiting');
    expect(await queue.cancel(database.db, id)).toEqual({ cancelled: true });
    const states = async () =>
      await Promise.all(ids.map(async (one) => (await queue.find(database.db, one))?.state));
    await until(async () =>
      (await states()).every((state) => state === 'cancelled' || state === 'completed'),
    );
    expect(await states()).toEqual(['cancelled', 'completed', 'cancelled']);
    expect(await queue.find(database.db, Number(ids[2]))).toMatchObject({
      errors: [{ message: 'The job that enqueued it was cancelled' }],
    });
  });

  test('goes on when its parent is discarded, so that a redrive finds its output', async () => {
    let isBroken = true;
    await start(async ({ step }) => {
      const one = await step.enqueue('one', child, 4);
      if (isBroken) throw new NonRetryableError('broken');
      return await step.waitForJob(one);
    });
    const id = await enqueue();
    expect(await recordOf(id)).toMatchObject({ state: 'discarded' });
    isBroken = false;
    await queue.redrive(database.db, id);
    expect(await outputOf(id)).toBe(40);
  });

  test.each<[string, string, (step: Parameters<Run>[0]['step'], one: Child<typeof child>) => unknown]>([
    ['waitForJob', 'one: end', (step, one) => step.waitForJob(one)],
    ['all', 'sum', async (step, one) => (await step.all('sum', [one]))[0]],
    ['first', 'first', async (step, one) => (await step.first('first', { one })).value],
    [
      'allEnded',
      'ends',
      async (step, one) => {
        const [end] = await step.allEnded('ends', [one]);
        if (end?.state === 'completed') return end.output;
        throw new NonRetryableError(String(end?.reason));
      },
    ],
  ])('that was put back is waited for by %s, whether or not it has ended', async (_, from, waits) => {
    const mended = gate();
    let isBroken = true;
    let childId = 0;
    await start(
      async ({ step }) => {
        const one = await step.enqueue('one', child, 4);
        childId = one.id;
        return await waits(step, one);
      },
      [
        handle(child, async ({ payload }) => {
          if (isBroken) throw new Error('broken');
          await mended.opened;
          return payload * 10;
        }),
      ],
    );
    const id = await enqueue();
    expect(await recordOf(id)).toMatchObject({ state: 'discarded' });
    isBroken = false;
    await queue.redrive(database.db, childId);
    expect(await queue.workflows.redrive(database.db, id, { from })).toBe('redriven');
    await until(async () => (await queue.find(database.db, id))?.state === 'waiting');
    mended.open();
    expect(await outputOf(id)).toBe(40);
    expect(await openBatches()).toBe(0);
  });

  test('that was put back and fails again is a failure again, also beside one that goes on', async () => {
    const over = gate();
    let ids: readonly number[] = [];
    await start(
      async ({ step }) => {
        const both = await step.enqueueMany('both', child, [{ payload: 1 }, { payload: 2 }]);
        ids = both.ids;
        return await step.all('all', both);
      },
      [
        handle(child, async ({ payload }) => {
          if (payload === 1) throw new NonRetryableError('again');
          await over.opened;
          return 2;
        }),
      ],
    );
    const id = await enqueue();
    expect(await recordOf(id)).toMatchObject({ state: 'discarded' });
    await queue.redrive(database.db, Number(ids[0]));
    await queue.workflows.redrive(database.db, id, { from: 'all' });
    expect(await recordOf(id)).toMatchObject({
      state: 'discarded',
      errors: [{ name: 'ChildFailedError' }, { name: 'ChildFailedError' }],
    });
    over.open();
  });

  test('that was cancelled with its job, and put back with it, is not cancelled once more', async () => {
    let childId = 0;
    const over = gate();
    await start(
      async ({ step }) => {
        const one = await step.enqueue('one', child, 4);
        childId = one.id;
        return await step.waitForJob(one);
      },
      [
        handle(child, async ({ signal, job }) => {
          if (job.errors.length > 0) await over.opened;
          else await new Promise((resolve) => signal.addEventListener('abort', resolve));
          signal.throwIfAborted();
          return 40;
        }),
      ],
    );
    const id = await enqueue();
    await until(async () => (await queue.find(database.db, id))?.state === 'waiting');
    await queue.cancel(database.db, id);
    await until(async () => (await queue.find(database.db, childId))?.state === 'cancelled');
    // Its end is counted.
    await until(async () => (await openBatches()) === 0);
    await queue.redrive(database.db, { state: 'cancelled', kind: 'child' });
    await queue.redrive(database.db, { state: 'cancelled', kind: 'parent' });
    await until(async () => (await queue.find(database.db, id))?.state === 'waiting');
    const [batch] = await database.client`
      select ended_at is null as open, cancel_reason from queue_batches order by id desc limit 1`;
    expect(batch).toEqual({ open: true, cancel_reason: null });
    over.open();
    expect(await outputOf(id)).toBe(40);
  });

  test('that was put back is waited for in runNext', async () => {
    let isBroken = true;
    let childId = 0;
    const family = [
      handle(parent, async ({ step }) => {
        const one = await step.enqueue('one', child, 4);
        childId = one.id;
        return await step.waitForJob(one);
      }),
      handle(child, async ({ payload }) => {
        if (isBroken) throw new Error('broken');
        return payload * 10;
      }),
    ];
    const next = async () => (await runNext(database.db, { queue, handlers: family }))?.outcome;
    const id = await enqueue();
    expect([await next(), await next(), await next()]).toEqual(['waiting', 'failed', 'failed']);
    isBroken = false;
    await queue.redrive(database.db, childId);
    await queue.workflows.redrive(database.db, id, { from: 'one: end' });
    expect([await next(), await next(), await next()]).toEqual(['waiting', 'completed', 'completed']);
    expect(await outputOf(id)).toBe(40);
  });

  test('of another job is not waited for: nothing would wake this one', async () => {
    const over = gate();
    let handedOn: Child<typeof child> | undefined;
    await start(
      async ({ step, db }) => {
        const one = await step.enqueue('one', child, 4);
        handedOn = one;
        const message = await step.run('message', async () => {
          const { id } = await queue.enqueue(db, other);
          const error = await until(async () => (await queue.find(db, id))?.errors[0]);
          return error?.message;
        });
        over.open();
        return [message, await step.waitForJob(one)];
      },
      [
        handle(child, async ({ payload }) => {
          await over.opened;
          return payload * 10;
        }),
        handle(other, async ({ step }) => {
          if (handedOn !== undefined) await step.waitForJob(handedOn);
          return 'other';
        }),
      ],
    );
    expect(await outputOf(await enqueue())).toEqual([
      expect.stringMatching(/^step 'one: end': job \d+ \('other'\) did not enqueue the children/),
      40,
    ]);
  });

  test('cannot have a key, or keep no result', async () => {
    const errors: unknown[] = [];
    const unkept = defineJob('unkept', { queue: 'q', keepResult: false });
    await start(async ({ step }) => {
      const note = (error: unknown) => errors.push(String(error));
      await step.enqueue('one', unkept).catch(note);
      // @ts-expect-error: a step makes its job once in any case
      await step.enqueue('two', child, 1, { uniqueKey: 'taken' }).catch(note);
      // @ts-expect-error: as above
      await step.enqueue('three', child, 1, { debounce: { key: 'k', delayMs: 10 } }).catch(note);
      // @ts-expect-error: the option has another name
      await step.enqueue('four', child, 1, { delay: 10 }).catch(note);
      return 'over';
    });
    await queue.enqueue(database.db, child, 99, { uniqueKey: 'taken', delayMs: 60_000 });
    expect(await outputOf(await enqueue())).toBe('over');
    expect(errors).toEqual([
      "TypeError: step 'one': 'unkept' has keepResult: false, so the step could not learn how it ended; " +
        "write keepResult: 'outcome'",
      expect.stringMatching(/^QueueError: step 'two': job \d+ \('child'\) has the unique key 'taken'/),
      "TypeError: step 'three': 'child' has debounce, throttle, replace or unique, but here each " +
        'entry must become a job of its own',
      "TypeError: step 'four': unknown option 'delay'; did you mean delayMs?",
    ]);
  });
});

describe('many children', () => {
  test('are waited for together, in their order', async () => {
    let runs = 0;
    await start(async ({ step }) => {
      runs++;
      const entries = Array.from({ length: 2_500 }, (_, at) => ({ payload: at + 100 }));
      const all = await step.enqueueMany('all', child, entries);
      const outputs = await step.all('outputs', all);
      return [outputs.length, outputs[0], outputs[2_499]];
    });
    expect(await outputOf(await enqueue())).toEqual([2_500, 1_000, 25_990]);
    // It is due at their end, and not at each.
    expect(runs).toBe(2);
  });

  test('of several kinds have their own types', async () => {
    await start(async ({ step }) => {
      const one = await step.enqueue('one', child, 4);
      const two = await step.enqueue('two', other);
      const [number, text] = await step.all('both', [one, two]);
      return [number + 1, text.toUpperCase()];
    });
    expect(await outputOf(await enqueue())).toEqual([41, 'OTHER']);
  });

  test('of which one fails throw at once, while the others go on', async () => {
    let release = () => {};
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    onTestFinished(release);
    await start(
      async ({ step }) => {
        const all = await step.enqueueMany('all', child, [{ payload: 1 }, { payload: 13 }, { payload: 3 }]);
        return await step.all('outputs', all).catch((error: ChildFailedError) => error.reason);
      },
      [
        handle(child, async ({ payload }) => {
          if (payload === 13) throw new NonRetryableError('thirteen');
          await held;
          return payload;
        }),
      ],
    );
    expect(await outputOf(await enqueue())).toBe('thirteen');
    expect(await openBatches()).toBe(1);
    release();
    await until(async () => (await openBatches()) === 0);
  });

  test('that have all ended say how', async () => {
    await start(async ({ step }) => {
      const all = await step.enqueueMany('all', child, [{ payload: 1 }, { payload: 13 }, { payload: 3 }]);
      return await step.allEnded('ends', all);
    });
    expect(await outputOf(await enqueue())).toMatchObject([
      { state: 'completed', output: 10 },
      { state: 'discarded', reason: 'thirteen' },
      { state: 'completed', output: 30 },
    ]);
  });

  test('that are waited for side by side: one that has ended hides no wait for another', async () => {
    let goOn = () => {};
    const gate = new Promise<void>((resolve) => {
      goOn = resolve;
    });
    const gated = handle(child, async ({ payload }) => {
      if (payload === 1) await gate;
      return payload * 10;
    });
    await start(
      async ({ step }) => {
        const open = await step.enqueue('open', child, 1);
        const ended = await step.enqueue('ended', child, 2);
        const look = async () => {
          await step.run('look', async () => {
            await until(async () => (await queue.find(database.db, ended.id))?.state === 'completed');
            await until(async () => (await waitedFor(open.batchId)) && (await openBatches()) === 1);
          });
          return await step.waitForJob(ended);
        };
        return await Promise.all([step.waitForJob(open), look()]);
      },
      [gated],
    );
    const id = await enqueue();
    await until(async () => (await queue.find(database.db, id))?.state === 'waiting');
    goOn();
    expect(await outputOf(id)).toEqual([10, 20]);
  });

  test('that are waited for in two ways: each goes on as soon as what it waits for has ended', async () => {
    const gates = new Map<number, () => void>();
    const gated = handle(child, async ({ payload }) => {
      await new Promise<void>((resolve) => gates.set(payload, resolve));
      return payload * 10;
    });
    await start(
      async ({ step }) => {
        const one = await step.enqueue('one', child, 1);
        const two = await step.enqueue('two', child, 2);
        const three = await step.enqueue('three', child, 3);
        const late = async () => {
          await step.run('look', () => until(async () => await waitedFor(one.batchId)));
          return await step.all('both', [two, three]);
        };
        const first = async () => {
          const output = await step.waitForJob(one);
          return await step.run('one has ended', () => output);
        };
        return await Promise.all([first(), late()]);
      },
      [gated],
    );
    const id = await enqueue();
    await until(async () => gates.size === 3 && (await queue.find(database.db, id))?.state === 'waiting');
    gates.get(1)?.();
    await until(async () =>
      (await queue.workflows.steps(database.db, id)).some(({ name }) => name === 'one has ended'),
    );
    gates.get(2)?.();
    gates.get(3)?.();
    expect(await outputOf(id)).toEqual([10, [20, 30]]);
  });

  test('that are waited for to their end and to a failure: the failure is thrown at once', async () => {
    let release = () => {};
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    onTestFinished(release);
    let isOpen = false;
    await start(
      async ({ step }) => {
        const all = await step.enqueueMany('all', child, [{ payload: 1 }, { payload: 13 }]);
        const failing = async () => {
          const reason = await step.all('outputs', all).catch((error: ChildFailedError) => error.reason);
          await step.run('one has failed', async () => {
            isOpen = (await openBatches()) === 1;
            release();
          });
          return reason;
        };
        const later = async () => {
          await step.run('look', () => until(async () => await waitedFor(all.batchId)));
          return await step.allEnded('ends', all);
        };
        return await Promise.all([failing(), later()]);
      },
      [
        handle(child, async ({ payload }) => {
          // Not before the parent waits for both.
          const waiting = { kind: 'parent', state: 'waiting' } as const;
          await until(async () => (await queue.list(database.db, waiting)).jobs.length > 0);
          if (payload === 13) throw new NonRetryableError('thirteen');
          await held;
          return payload;
        }),
      ],
    );
    expect(await outputOf(await enqueue())).toMatchObject([
      'thirteen',
      [{ output: 1 }, { state: 'discarded' }],
    ]);
    expect(isOpen).toBe(true);
  });

  test.each(['one after the other', 'side by side'])(
    'that are waited for %s: a look for jobs that were not woken leaves alone what waits for the second',
    async (how) => {
      const second = gate();
      await start(
        async ({ step }) => {
          const one = await step.enqueue('one', child, 1);
          if (how === 'side by side') {
            const two = await step.enqueue('two', child, 2);
            return await Promise.all([step.waitForJob(one), step.waitForJob(two)]);
          }
          return [await step.waitForJob(one), await step.waitForJob(await step.enqueue('two', child, 2))];
        },
        [
          handle(child, async ({ payload }) => {
            if (payload === 2) await second.opened;
            return payload;
          }),
        ],
      );
      const id = await enqueue();
      await until(async () => {
        const steps = await queue.workflows.steps(database.db, id);
        const isOver = (name: string) => steps.find((step) => step.name.startsWith(`${name}:`))?.endedAt;
        const state = (await queue.find(database.db, id))?.state;
        return isOver('one') instanceof Date && isOver('two') === null && state === 'waiting';
      });
      const batches = (await database.client`select id from queue_batches`).map((row) => Number(row.id));
      const all = { ...tables, ...workflowTables };
      expect((await wakeAllWaiters(database.db, all, batches, undefined)).queues).toEqual(new Set());
      second.open();
      expect(await outputOf(id)).toEqual([1, 2]);
    },
  );

  test('of whose failure the parent knows and goes on: a look for jobs that were not woken wakes it once at most', async () => {
    const [first, second] = [gate(), gate()];
    let calls = 0;
    await start(
      async ({ step }) => {
        calls++;
        const all = await step.enqueueMany('all', child, [{ payload: 1 }, { payload: 13 }]);
        const reason = await step.all('outputs', all).catch((error: ChildFailedError) => error.reason);
        return [reason, await step.waitForJob(await step.enqueue('two', child, 2))];
      },
      [
        handle(child, async ({ payload }) => {
          if (payload === 13) {
            const waiting = { kind: 'parent', state: 'waiting' } as const;
            await until(async () => (await queue.list(database.db, waiting)).jobs.length > 0);
            throw new NonRetryableError('thirteen');
          }
          await (payload === 1 ? first : second).opened;
          return payload;
        }),
      ],
    );
    const id = await enqueue();
    const all = { ...tables, ...workflowTables };
    const waitsForTwo = async () => {
      const steps = await queue.workflows.steps(database.db, id);
      const isThere = steps.some(({ name, endedAt }) => name.startsWith('two:') && endedAt === null);
      return isThere && (await queue.find(database.db, id))?.state === 'waiting';
    };
    await until(waitsForTwo);
    const batches = (await database.client`select id from queue_batches`).map((row) => Number(row.id));
    const before = calls;
    const { queues } = await wakeAllWaiters(database.db, all, batches, undefined);
    // The worker's own look may have been the first.
    await until(async () => calls >= before + queues.size && (await waitsForTwo()));
    expect((await wakeAllWaiters(database.db, all, batches, undefined)).queues).toEqual(new Set());
    expect(calls).toBeLessThanOrEqual(before + 1);
    first.open();
    second.open();
    expect(await outputOf(id)).toEqual(['thirteen', 2]);
  });

  test('may be none', async () => {
    await start(async ({ step }) => await step.all('outputs', await step.enqueueMany('all', child, [])));
    expect(await outputOf(await enqueue())).toEqual([]);
  });
});

describe('under faults', () => {
  test.each([
    ['whose answer is lost', 'fold: folded'],
    ['that is under way when its connection breaks', 'fold: sent'],
  ] as const)('a count %s has made the parent due all the same', async (_, point) => {
    const worker = await start(async ({ step }) => {
      return await step.waitForJob(await step.enqueue('one', child, 4));
    });
    let lost = 0;
    atFaultPoints(async (at) => {
      if (at !== point || lost > 0) return;
      lost++;
      throw new Error('lost here');
    });
    const errors: string[] = [];
    worker.on('error', ({ during }) => errors.push(during));
    expect(await outputOf(await enqueue())).toBe(40);
    expect(lost).toBe(1);
    expect(errors).toEqual(['counting the jobs that have ended']);
  });

  test('a wait whose answer is lost is written again', async () => {
    let lost = 0;
    atFaultPoints(async (at) => {
      if (at !== 'wait: written' || lost > 2) return;
      lost++;
      throw new Error('lost here');
    });
    await start(async ({ step }) => await step.waitForJob(await step.enqueue('one', child, 4)));
    expect(await outputOf(await enqueue())).toBe(40);
    expect(lost).toBe(3);
  });

  test('a child that was put back is waited for, although opening its batch again loses its answer', async () => {
    const mended = gate();
    let isBroken = true;
    let [childId, lost] = [0, 0];
    await start(
      async ({ step }) => {
        const one = await step.enqueue('one', child, 4);
        childId = one.id;
        return await step.waitForJob(one);
      },
      [
        handle(child, async ({ payload }) => {
          if (isBroken) throw new Error('broken');
          await mended.opened;
          return payload * 10;
        }),
      ],
    );
    const id = await enqueue();
    expect(await recordOf(id)).toMatchObject({ state: 'discarded' });
    isBroken = false;
    atFaultPoints(async (at) => {
      if (at !== 'wait: reopened' || lost > 2) return;
      lost++;
      throw new Error('lost here');
    });
    await queue.redrive(database.db, childId);
    expect(await queue.workflows.redrive(database.db, id, { from: 'one: end' })).toBe('redriven');
    await until(async () => (await queue.find(database.db, id))?.state === 'waiting');
    mended.open();
    expect(await outputOf(id)).toBe(40);
    expect(lost).toBe(3);
    expect(await openBatches()).toBe(0);
  });

  test('children whose enqueue lost its answer are enqueued once, and waited for', async () => {
    let lost = 0;
    atFaultPoints(async (at) => {
      if (at !== 'children: enqueued' || lost > 2) return;
      lost++;
      throw new Error('lost here');
    });
    await start(async ({ step, job }) => {
      const two = await step.enqueueMany('two', child, [{ payload: 1 }, { payload: 2 }]);
      return [...(await step.all('ends', two)), job.attempt];
    });
    expect(await outputOf(await enqueue())).toEqual([10, 20, 1]);
    expect(lost).toBe(3);
    const [count] = await database.client`
      select (select count(*)::int from queue_batches) as batches, count(*)::int as ended
      from queue_results where kind = 'child'`;
    expect(count).toEqual({ batches: 1, ended: 2 });
  });

  test('children whose enqueue meets its repetition are enqueued once', async () => {
    await database.client`
      insert into queue_jobs (id, queue, kind, payload, max_attempts, worker_id, claimed_at, fence)
      overriding system value values (9, 'q', 'parent', '1', 3, 7, now(), 5)`;
    const [holder, all] = [
      { queue: 'q', workerId: 7 },
      { ...tables, ...workflowTables },
    ];
    const children: ChildrenToInsert = {
      step: { id: 9, fence: 5, name: 'one', tookMs: 1 },
      jobs: [await newJob(child, 1)],
      policy: 'parent',
      wakeUp: undefined,
    };
    let repetition: Promise<unknown> | undefined;
    const first = await database.db.transaction(async (tx) => {
      const first = await enqueueChildren(tx, all, holder, children, 'wait');
      repetition = enqueueChildren(database.db, all, holder, children, 'wait').catch(sqlStateOf);
      const { client } = database;
      const blocked = async () =>
        await client`select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`;
      await until(async () => (await blocked()).length > 0);
      return first;
    });
    expect(await repetition).toBe('23505');
    expect(await enqueueChildren(database.db, all, holder, children, 'briefly')).toEqual(first);
    expect(await database.client`select id::int from queue_jobs where kind = 'child'`).toEqual(
      first?.ids.map((id) => ({ id })),
    );
    expect(await database.client`select from queue_batches`).toHaveLength(1);
  });

  test('a repetition that the first one refuses is sent once more', async () => {
    await database.client.unsafe(`
      create sequence refusals;
      create function refuse() returns trigger language plpgsql as $$ begin
        if new.kind = 'enqueue' and nextval('refusals') = 1 then raise unique_violation; end if;
        return new;
      end $$;
      create trigger refuse before insert on queue_steps for each row execute function refuse()`);
    onTestFinished(async () => {
      await database.client`drop function refuse cascade`;
      await database.client`drop sequence refusals`;
    });
    await start(async ({ step, job }) => [
      await step.waitForJob(await step.enqueue('one', child, 1)),
      job.attempt,
    ]);
    expect(await outputOf(await enqueue())).toEqual([10, 1]);
  });

  test('children that workers without workflows have ended are found by a recount', async () => {
    const plain = createWorker(database.db, {
      queue: createQueue({ tables }),
      handlers: [handlersFor<typeof database.db>().handle(child, async ({ payload }) => payload)],
      log: false,
    });
    onTestFinished(() => plain.stop());
    const startFamily = () =>
      start(async ({ step }) => {
        const all = await step.enqueueMany('all', child, [{ payload: 1 }, { payload: 2 }]);
        return await step.all('outputs', all);
      }, []);
    await Promise.all([plain.start(), startFamily()]);
    const id = await enqueue();
    await until(async () => {
      const [row] = await database.client`select count(*)::int as n from queue_results where kind = 'child'`;
      return row?.n === 2 && (await queue.find(database.db, id))?.state === 'waiting';
    });
    await anHourPasses();
    // Its first look is soon after its start.
    await startFamily();
    expect(await outputOf(id)).toEqual([1, 2]);
    const [batch] = await database.client`select failed::int from queue_batches`;
    expect(batch).toEqual({ failed: 0 });
  });

  test('a member whose row was deleted by hand is found by a recount', async () => {
    const startFamily = () =>
      start(async ({ step }) => {
        const entries = [{ payload: 1, delayMs: 86_400_000 }, { payload: 2 }];
        return await step.allEnded('ends', await step.enqueueMany('all', child, entries));
      });
    await startFamily();
    const id = await enqueue();
    await until(async () => (await queue.find(database.db, id))?.state === 'waiting');
    await database.client`delete from queue_jobs where kind = 'child' and run_at > now()`;
    await anHourPasses();
    await startFamily();
    expect(await outputOf(id)).toMatchObject([{ state: 'gone' }, { state: 'completed', output: 20 }]);
  });
});

describe('without a worker', () => {
  const family = [
    handle(parent, async ({ step }) => {
      const all = await step.enqueueMany('all', child, [{ payload: 1 }, { payload: 2 }]);
      return await step.all('outputs', all);
    }),
    ...children,
  ];

  test('drain goes on until the parents have ended, too', async () => {
    const ids = [await enqueue(), await enqueue()];
    const parents = async () =>
      await database.client`select from queue_jobs where kind = 'parent' and blockers < 0 and worker_id is null`;
    let bothWait: Promise<unknown> | undefined;
    const handlers = [
      ...family.slice(0, 1),
      handle(child, async ({ payload }) => {
        // Otherwise a parent may find that its children have ended, and not wait. Asked once: later one runs.
        bothWait ??= until(async () => (await parents()).length === 2);
        await bothWait;
        return payload * 10;
      }),
    ];
    const result = await drain(database.db, { queue, handlers, deadlineMs: 100_000 });
    expect(result).toMatchObject({ completed: 6, snoozed: 2, empty: true });
    for (const id of ids) expect(await outputOf(id)).toEqual([10, 20]);
  });

  test('in runNext a handler may go on without children that the database has refused', async () => {
    await database.client`
      alter table queue_jobs add constraint refused check (kind <> 'child' or payload <> '13')`;
    onTestFinished(async () => {
      await database.client`alter table queue_jobs drop constraint refused`;
    });
    const handlers = [
      handle(parent, async ({ step }) => {
        await expect(step.enqueue('refused', child, 13)).rejects.toThrow();
        return await step.waitForJob(await step.enqueue('taken', child, 2));
      }),
    ];
    await enqueue();
    expect(await runNext(database.db, { queue, handlers })).toMatchObject({ outcome: 'waiting' });
    expect(await database.client`select payload from queue_jobs where kind = 'child'`).toEqual([
      { payload: 2 },
    ]);
  });

  test('runNext runs the parent after its children', async () => {
    const id = await enqueue();
    const ran: string[] = [];
    for (;;) {
      const next = await runNext(database.db, { queue, handlers: family });
      if (next === undefined) break;
      ran.push(`${next.job.kind} ${next.outcome}`);
    }
    expect(ran).toEqual(['parent waiting', 'child completed', 'child completed', 'parent completed']);
    expect(await outputOf(id)).toEqual([10, 20]);
  });
});
