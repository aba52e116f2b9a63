import { eq, sql } from 'drizzle-orm';
import { integer, pgTable } from 'drizzle-orm/pg-core';
import {
  type BatchContext,
  type BatchJob,
  cancel,
  createQueue,
  createWorker,
  defineJob,
  drain,
  fail,
  fixedBackoff,
  handleBatch,
  LeaseLostError,
  runNext,
  snooze,
} from 'drizzle-queue';
import { queueJobs } from 'drizzle-queue/schema';
import { afterEach, beforeAll, beforeEach, expect, onTestFinished, test } from 'vitest';
import { z } from 'zod';
import { atFaultPoints } from '../../../src/core/sql/fault-point.ts';
import { emptyTables } from '../../support/empty-tables.ts';
import { useTestDatabase } from '../../support/test-database.ts';
import { until } from '../../support/until.ts';
import { nextEvent } from '../next-event.ts';

const database = useTestDatabase({ max: 10 });
const queue = createQueue();
const HOUR_MS = 3_600_000;
const rows = pgTable('rows', { n: integer('n').primaryKey() });
const load = defineJob('load', {
  payload: z.object({ n: z.number() }),
  output: z.object({ row: z.number() }),
  backoff: fixedBackoff(HOUR_MS),
});
type Jobs = readonly BatchJob<typeof load>[];
type Context = BatchContext<typeof load>;
type Results = Parameters<Context['complete']>[1];

beforeAll(async () => {
  await database.client`create table rows (n int primary key)`;
});

beforeEach(async () => {
  await emptyTables(database.client, 'rows', 'queue_jobs', 'queue_results', 'queue_workers');
});

afterEach(() => atFaultPoints());

const written = async () => (await database.db.select().from(rows).orderBy(rows.n)).map(({ n }) => n);
const outputs = (jobs: Jobs) => jobs.map(({ payload: { n } }) => ({ row: n }));
const enqueue = async (count = 3) => {
  const entries = Array.from({ length: count }, (_, n) => ({ payload: { n } }));
  return (await queue.enqueueMany(database.db, load, entries)).map(({ id }) => id);
};
const found = async (ids: readonly number[]) =>
  await Promise.all(ids.map((id) => queue.find(database.db, load, id)));
const statesOf = async (ids: readonly number[]) => (await found(ids)).map((job) => job?.state);

async function write(
  jobs: Jobs,
  { complete }: Context,
  results: Results = outputs(jobs),
  after?: () => void,
) {
  await database.db.transaction(async (tx) => {
    await tx.insert(rows).values(jobs.map(({ payload }) => payload));
    await complete(tx, results);
    after?.();
  });
}

type Run = (jobs: Jobs, context: Context) => Promise<Results | undefined>;

/** Enqueues three jobs, and drains them in one batch. */
async function run(handler: Run) {
  const ids = await enqueue();
  const handlers = [handleBatch(load, { maxSize: 10, maxWaitMs: 60_000 }, handler)];
  const drained = await drain(database.db, { queue, handlers, deadlineMs: 20_000 });
  return { ids, drained, jobs: await found(ids) };
}

/** Another worker, which lives, claims the job: as after a declared death. */
async function takeOver(id: number): Promise<void> {
  await database.client`
    insert into queue_workers (id, name, queues) overriding system value values (424242, 'other', '[]')
    on conflict do nothing`;
  await database.db
    .update(queueJobs)
    .set({ fence: sql`fence + 1`, workerId: 424_242 })
    .where(eq(queueJobs.id, id));
}

/** The same with a worker, for what a drain would wait for; answers once each job has its event. */
async function work(ids: readonly number[], handler: Run) {
  const handlers = [handleBatch(load, { maxSize: ids.length, maxWaitMs: 60_000 }, handler)];
  const worker = createWorker(database.db, { queue, handlers });
  onTestFinished(() => worker.stop());
  const told: string[] = [];
  for (const event of ['completed', 'failed', 'snoozed', 'cancelled', 'lost'] as const) {
    worker.on(event, ({ job }) => told.push(`${event} ${ids.indexOf(job.id)}`));
  }
  await worker.start();
  await until(() => told.length === ids.length);
  return told.sort();
}

test('the ends of all jobs and the writes commit together, and nothing is settled twice', async () => {
  const { jobs, drained } = await run(async (jobs, context) => {
    await write(jobs, context);
    // Ignored, even with a length that would be refused.
    return [{ row: 99 }];
  });
  expect(jobs).toMatchObject([0, 1, 2].map((row) => ({ state: 'completed', output: { row }, errors: [] })));
  expect(await written()).toEqual([0, 1, 2]);
  expect(drained).toMatchObject({ completed: 3, failed: 0 });
});

test('in one statement', async () => {
  let statements = 0;
  await run(async (jobs, { complete }) => {
    await database.db.transaction(async (tx) => {
      const execute = tx.execute.bind(tx);
      tx.execute = ((query: Parameters<typeof execute>[0]) => {
        statements++;
        return execute(query);
      }) as typeof tx.execute;
      await tx.insert(rows).values(jobs.map(({ payload }) => payload));
      await complete(tx, outputs(jobs));
    });
    return undefined;
  });
  expect(statements).toBe(1);
});

test('a transaction that has written nothing before completes them, too', async () => {
  const { jobs } = await run(async (jobs, { complete }) => {
    await database.db.transaction(async (tx) => await complete(tx, outputs(jobs)));
    return undefined;
  });
  expect(jobs.map((job) => job?.state)).toEqual(['completed', 'completed', 'completed']);
});

test('without a schema for the output none is needed', async () => {
  const bare = defineJob('bare');
  await queue.enqueueMany(database.db, bare, [{}, {}]);
  const handler = handleBatch(bare, {}, async (_, { complete }) => {
    await database.db.transaction(async (tx) => await complete(tx));
  });
  expect(await drain(database.db, { queue, handlers: [handler], deadlineMs: 20_000 })).toMatchObject({
    completed: 2,
    failed: 0,
  });
});

test('a throw inside the transaction undoes all', async () => {
  const { jobs } = await run(async (jobs, context) => {
    await write(jobs, context, undefined, () => {
      throw new Error('after complete');
    });
    return undefined;
  });
  for (const job of jobs) {
    expect(job).toMatchObject({ state: 'scheduled', errors: [{ message: 'after complete' }] });
  }
  expect(await written()).toEqual([]);
});

test('a rollback that the handler swallows fails all attempts', async () => {
  const { jobs } = await run(async (jobs, context) => {
    const rolledBack = write(jobs, context, undefined, () => {
      throw new Error('swallowed');
    });
    await rolledBack.catch(() => undefined);
    return outputs(jobs);
  });
  for (const job of jobs) {
    expect(job).toMatchObject({
      state: 'scheduled',
      errors: [{ message: expect.stringContaining('did not commit') }],
    });
  }
});

test('a throw after the commit changes nothing any more', async () => {
  const { jobs, drained } = await run(async (jobs, context) => {
    await write(jobs, context);
    throw new Error('too late');
  });
  expect(jobs.map((job) => job?.state)).toEqual(['completed', 'completed', 'completed']);
  expect(drained).toMatchObject({ completed: 3, failed: 0 });
});

test('after a rollback it can be called again', async () => {
  const { jobs, drained } = await run(async (jobs, context) => {
    const rolledBack = write(jobs, context, undefined, () => {
      throw new Error('40001');
    });
    await rolledBack.catch(() => undefined);
    await write(jobs, context);
    return undefined;
  });
  expect(jobs.map((job) => job?.state)).toEqual(['completed', 'completed', 'completed']);
  expect(await written()).toEqual([0, 1, 2]);
  expect(drained).toMatchObject({ completed: 3, failed: 0 });
});

test('after a rollback it can be called for fewer: each job ends as the last call says', async () => {
  const ids = await enqueue();
  const told = await work(ids, async (jobs, context) => {
    const rolledBack = write(jobs, context, undefined, () => {
      throw new Error('row 1 is bad');
    });
    await rolledBack.catch(() => undefined);
    const good = jobs.filter(({ payload }) => payload.n !== 1);
    const results = jobs.map(({ payload: { n } }) => (n === 1 ? fail(new Error('bad')) : { row: n }));
    await write(good, context, results);
    return undefined;
  });
  expect(told).toEqual(['completed 0', 'completed 2', 'failed 1']);
  expect(await found(ids)).toMatchObject([
    { state: 'completed', output: { row: 0 } },
    { state: 'scheduled', errors: [{ message: 'bad' }] },
    { state: 'completed', output: { row: 2 } },
  ]);
});

test('jobs with fail, snooze or cancel are left out, and settled when the handler has ended', async () => {
  const ids = await enqueue(4);
  const during: (string | undefined)[][] = [];
  const told = await work(ids, async (jobs, context) => {
    const [first] = jobs;
    if (first === undefined) throw new Error('an empty batch');
    await write([first], context, [{ row: 0 }, fail(new Error('one')), snooze(HOUR_MS), cancel('three')]);
    during.push(await statesOf(ids));
    return undefined;
  });
  expect(told).toEqual(['cancelled 3', 'completed 0', 'failed 1', 'snoozed 2']);
  expect(during).toEqual([['completed', 'running', 'running', 'running']]);
  expect(await statesOf(ids)).toEqual(['completed', 'scheduled', 'scheduled', 'cancelled']);
});

test.each([
  ['alone', false],
  ['after a call that was rolled back', true],
])('where all have fail, snooze or cancel, these count, %s', async (_, again) => {
  const ids = await enqueue(3);
  const told = await work(ids, async (jobs, context) => {
    if (again) {
      const rolledBack = write(jobs, context, undefined, () => {
        throw new Error('40001');
      });
      await rolledBack.catch(() => undefined);
    }
    const results = [fail(new Error('none')), snooze(HOUR_MS), cancel('two')];
    await database.db.transaction((tx) => context.complete(tx, results));
    return undefined;
  });
  expect(told).toEqual(['cancelled 2', 'failed 0', 'snoozed 1']);
  expect(await statesOf(ids)).toEqual(['scheduled', 'scheduled', 'cancelled']);
  expect(await written()).toEqual([]);
});

test.each([
  ['twice in one transaction', true],
  ['after one that has committed', false],
])('%s it throws LeaseLostError', async (_, same) => {
  let thrown: unknown;
  const { jobs } = await run(async (jobs, { complete }) => {
    const again = async (tx: Parameters<typeof complete>[0]) => {
      await complete(tx, outputs(jobs)).catch((error: unknown) => {
        thrown = error;
      });
    };
    await database.db.transaction(async (tx) => {
      await complete(tx, outputs(jobs));
      if (same) await again(tx);
    });
    if (!same) await database.db.transaction(again);
    return undefined;
  });
  expect(thrown).toBeInstanceOf(LeaseLostError);
  expect(String(thrown)).toContain('has committed');
  expect(jobs.map((job) => job?.state)).toEqual(['completed', 'completed', 'completed']);
});

test('beside a transaction that is still open it throws, and does not wait for itself', async () => {
  let thrown: unknown;
  await run(async (jobs, { complete }) => {
    await database.db.transaction(async (outer) => {
      await complete(outer, outputs(jobs));
      await database.db.transaction(async (inner) => {
        thrown = await complete(inner, outputs(jobs)).catch((error: unknown) => error);
      });
    });
    return undefined;
  });
  expect(thrown).toBeInstanceOf(LeaseLostError);
  expect(String(thrown)).toContain('still open');
});

test('when one job is lost, nothing commits: the others have failed, and it is the other worker’s', async () => {
  const ids = await enqueue();
  let thrown: unknown;
  const told = await work(ids, async (jobs, context) => {
    await takeOver(ids[1] ?? 0);
    await write(jobs, context).catch((error: unknown) => {
      thrown = error;
      throw error;
    });
    return undefined;
  });
  expect(thrown).toMatchObject({ name: 'LeaseLostError', jobId: ids[1] });
  expect(told).toEqual(['failed 0', 'failed 2', 'lost 1']);
  expect(await written()).toEqual([]);
  expect(await statesOf(ids)).toEqual(['scheduled', 'running', 'scheduled']);
});

test('a job that is lost between the check and the statement undoes all, too', async () => {
  const ids = await enqueue();
  let passed = 0;
  atFaultPoints(async (point) => {
    if (point === 'complete: checked' && ++passed === 1) await takeOver(ids[2] ?? 0);
  });
  const told = await work(ids, async (jobs, context) => {
    await write(jobs, context);
    return undefined;
  });
  expect(told).toEqual(['failed 0', 'failed 1', 'lost 2']);
  expect(await written()).toEqual([]);
});

test('a handler that leaves the lost job out completes the others', async () => {
  const ids = await enqueue();
  const told = await work(ids, async (jobs, context) => {
    await takeOver(ids[1] ?? 0);
    await until(() => jobs[1]?.signal.aborted);
    const kept = jobs.filter(({ signal }) => !signal.aborted);
    const results = jobs.map(({ payload, signal }) =>
      signal.aborted ? fail(signal.reason) : { row: payload.n },
    );
    await write(kept, context, results);
    return undefined;
  });
  expect(told).toEqual(['completed 0', 'completed 2', 'lost 1']);
  expect(await written()).toEqual([0, 2]);
});

test('an output that is refused, or too few results, throw before anything is sent', async () => {
  const thrown: unknown[] = [];
  const { jobs } = await run(async (jobs, { complete }) => {
    await database.db.transaction(async (tx) => {
      const wrong = jobs.map(() => ({ row: 'x' as unknown as number }));
      thrown.push(await complete(tx, wrong).catch((error: unknown) => error));
      thrown.push(await complete(tx, [{ row: 1 }]).catch((error: unknown) => error));
      await complete(tx, outputs(jobs));
    });
    return undefined;
  });
  expect(thrown).toMatchObject([
    { name: 'InvalidOutputError' },
    { name: 'QueueError', message: expect.stringContaining('was given 1 entries') },
  ]);
  expect(jobs.map((job) => job?.state)).toEqual(['completed', 'completed', 'completed']);
});

test('a database is no transaction', async () => {
  let thrown: unknown;
  await run(async (jobs, { complete }) => {
    thrown = await complete(database.db as never, outputs(jobs)).catch((error: unknown) => error);
    return outputs(jobs);
  });
  expect(thrown).toBeInstanceOf(TypeError);
});

test('once the batch is over it is refused', async () => {
  let late: Promise<unknown> | undefined;
  const ids = await enqueue();
  const slow = { ...load, timeoutMs: 50 };
  const handler = handleBatch(slow, { maxSize: 3 }, async (jobs, { signal, complete }) => {
    await new Promise((resolve) => signal.addEventListener('abort', resolve));
    late = database.db.transaction(async (tx) => await complete(tx, outputs(jobs))).catch((error) => error);
  });
  const worker = createWorker(database.db, { queue, handlers: [handler] });
  onTestFinished(() => worker.stop());
  const failed = nextEvent(worker, 'failed');
  await worker.start();
  await failed;
  expect(await until(() => late)).toMatchObject({
    name: expect.stringMatching(/JobTimeoutError|LeaseLostError/),
  });
  await until(async () => (await statesOf(ids)).every((state) => state === 'scheduled'));
});

test('in runNext it takes a transaction of the context’s own database', async () => {
  const [id = 0] = await enqueue(1);
  let refused: unknown;
  const handler = handleBatch(load, {}, async (jobs, { db, complete }) => {
    await database.db.transaction(async (tx) => {
      refused = await complete(tx, outputs(jobs)).catch((error: unknown) => error);
    });
    await db.transaction(async (tx) => await complete(tx, outputs(jobs)));
  });
  expect(await runNext(database.db, { queue, handlers: [handler] })).toMatchObject({ outcome: 'completed' });
  expect(String(refused)).toContain(
    'In runNext, complete(tx) takes a transaction inside that of the context',
  );
  expect(await statesOf([id])).toEqual(['completed']);
});
