import {
  createQueue,
  createWorker,
  defineJob,
  fixedBackoff,
  type Handler,
  handleBatch,
  handlersFor,
  JobDeadlineError,
  limitsIn,
  runNext,
  unvalidated,
  type Worker,
  workflowsIn,
} from 'drizzle-queue';
import * as control from 'drizzle-queue/schema/control';
import * as workflowTables from 'drizzle-queue/schema/workflows';
import { beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { claimJobs } from '../../src/core/queries/claim/claim-jobs.ts';
import { parkJobs } from '../../src/core/queries/settle/park-jobs.ts';
import { inContext } from '../../src/core/sql/statement-context.ts';
import { findUnwoken } from '../../src/features/batches/queries/find-unwoken.ts';
import { foldTallies } from '../../src/features/batches/queries/fold-tallies.ts';
import { isBlocked } from '../../src/features/batches/queries/is-blocked.ts';
import { wakeWaiters } from '../../src/features/batches/queries/wake-waiters.ts';
import { TalliedEnds } from '../../src/features/batches/sql/tallied-ends.ts';
import { claimOf, clearTables, tables } from '../queries/support/jobs.ts';
import { addControlTables, addWorkflowTables, clearWorkflowTables } from '../support/control-tables.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';

const database = useTestDatabase({ max: 10 });
const queue = createQueue({ tables, workflows: workflowsIn(workflowTables) });
const { workflows } = queue;
const { handle } = handlersFor<typeof database.db, typeof queue>();
const HOUR_MS = 3_600_000;
const before = defineJob('before', { queue: 'q', output: unvalidated<string>() });
const timed = defineJob('timed', { queue: 'q', deadlineMs: HOUR_MS, output: unvalidated<string>() });
const after = defineJob('after', { queue: 'q' });
/** The same kind after a deploy. */
const longer = defineJob('timed', { queue: 'q', deadlineMs: 3 * HOUR_MS, output: unvalidated<string>() });
const untimed = defineJob('timed', { queue: 'q', output: unvalidated<string>() });

beforeAll(async () => {
  await addControlTables(database);
  await addWorkflowTables(database);
});
beforeEach(async () => {
  await clearTables(database.client);
  await clearWorkflowTables(database);
  ran.length = 0;
  waited.length = 0;
});

const ran: string[] = [];
/** The ids of jobs that a worker has put back. */
const waited: number[] = [];
const noted = (kind: string) => async () => {
  ran.push(kind);
  return kind;
};
const others = [handle(before, noted('before')), handle(after, async () => void ran.push('after'))];
const handlers = [...others, handle(timed, noted('timed'))];

async function start(all: readonly Handler<typeof database.db>[] = handlers): Promise<Worker> {
  const worker = createWorker(database.db, { queue, handlers: all, log: false });
  onTestFinished(() => worker.stop());
  worker.on('waiting', ({ job }) => void waited.push(job.id));
  await worker.start();
  return worker;
}

const find = async (id: number | undefined) => await queue.find(database.db, Number(id));
const stateOf = async (id: number | undefined) => (await find(id))?.state;
/** Of all jobs that have a time, as if they had been enqueued an hour ago. */
const anHourPasses = () =>
  database.client`update queue_jobs
    set created_at = created_at - interval '1 hour', run_at = run_at - interval '1 hour' where kind = 'timed'`;
/** Claims look at it, although the hour is not over. */
const claimable = () => database.client`update queue_jobs set run_at = now() where kind = 'timed'`;
const beginBefore = () => database.client`update queue_jobs set run_at = now() where kind = 'before'`;

/** One that waits for another, which is not due for a day. */
async function enqueueFlow(): Promise<readonly number[]> {
  const { jobIds } = await workflows.enqueueFlow(database.db, (flow) => {
    const first = flow.add(before, undefined, { delayMs: 24 * HOUR_MS });
    const second = flow.add(timed, undefined, { after: [first] });
    flow.add(after, undefined, { after: [second] });
  });
  return jobIds;
}

const deadlineOf = async (id: number | undefined) => {
  const job = await find(id);
  return job === undefined || job.runAt === null ? undefined : job.runAt.getTime() - job.createdAt.getTime();
};

describe('a job of a flow that waits for others', () => {
  test('ends at its deadline, without being run, and what waits for it ends, too', async () => {
    const [first, second, third] = await enqueueFlow();
    expect(await stateOf(second)).toBe('scheduled');
    expect(await deadlineOf(second)).toBe(HOUR_MS);
    // Without a deadline there is nothing to be due at.
    expect(await stateOf(third)).toBe('waiting');
    await anHourPasses();
    await start();
    await until(async () => (await stateOf(third)) === 'cancelled');
    expect(await find(second)).toMatchObject({
      state: 'discarded',
      attempt: 1,
      errors: [{ name: 'JobDeadlineError' }],
    });
    expect(await stateOf(first)).toBe('scheduled');
    expect(ran).toEqual([]);
  });

  test('runs as soon as they have ended, where that is in time', async () => {
    const [, second, third] = await enqueueFlow();
    await beginBefore();
    await start();
    await until(async () => (await stateOf(third)) === 'completed');
    expect(await stateOf(second)).toBe('completed');
    expect(ran).toEqual(['before', 'timed', 'after']);
  });

  test('is woken by the claims of a worker that has waited for nothing else', async () => {
    const soon = defineJob('soon', { queue: 'q', deadlineMs: 1_500 });
    const { jobIds } = await workflows.enqueueFlow(database.db, (flow) => {
      const first = flow.add(before, undefined, { delayMs: HOUR_MS });
      flow.add(soon, undefined, { after: [first] });
    });
    await start([...others, handle(soon, async () => expect.unreachable())]);
    await until(async () => (await stateOf(jobIds[1])) === 'discarded');
    expect((await find(jobIds[1]))?.errors).toMatchObject([{ name: 'JobDeadlineError' }]);
  });

  test('ends in runNext, too', async () => {
    const [, second] = await enqueueFlow();
    await anHourPasses();
    const ended = await runNext(database.db, { queue, handlers });
    expect(ended).toMatchObject({ outcome: 'failed', job: { id: second } });
    expect(ended?.outcome === 'failed' && ended.error).toBeInstanceOf(JobDeadlineError);
    expect(await stateOf(second)).toBe('discarded');
    expect(ran).toEqual([]);
  });

  test('ends in a queue whose jobs are in groups', async () => {
    const limited = createQueue({
      tables,
      workflows: workflowsIn(workflowTables),
      limits: limitsIn(control, { q: { groups: { concurrency: 1 } } }),
    });
    const { jobIds } = await limited.workflows.enqueueFlow(database.db, (flow) => {
      const first = flow.add(before, undefined, { delayMs: 24 * HOUR_MS, group: 'a' });
      flow.add(timed, undefined, { after: [first], group: 'b' });
    });
    await anHourPasses();
    await database.client`update queue_groups set ready_at = ready_at - interval '1 hour' where group_key = 'b'`;
    const worker = createWorker(database.db, { queue: limited, handlers, log: false });
    onTestFinished(() => worker.stop());
    await worker.start();
    await until(async () => (await stateOf(jobIds[1])) === 'discarded');
    expect(ran).toEqual([]);
  });

  test('of a batch handler ends without a call', async () => {
    const [, second] = await enqueueFlow();
    await anHourPasses();
    const called = handleBatch(timed, { maxSize: 2, maxWaitMs: 1 }, async () => expect.unreachable());
    await start([...others, called]);
    await until(async () => (await stateOf(second)) === 'discarded');
    expect((await find(second))?.errors).toMatchObject([{ name: 'JobDeadlineError' }]);
  });

  test('keeps that time when the flow is redriven', async () => {
    const { id, jobIds } = await workflows.enqueueFlow(database.db, (flow) => {
      const first = flow.add(before, undefined, { delayMs: 24 * HOUR_MS });
      const bad = flow.add(after, undefined);
      flow.add(timed, undefined, { after: [first, bad], onFailure: 'run' });
    });
    await queue.cancel(database.db, Number(jobIds[1]));
    expect(await workflows.redriveFlow(database.db, id)).toBe(1);
    expect(await deadlineOf(jobIds[2])).toBe(HOUR_MS);
  });

  test('can be finished from outside', async () => {
    const [, second, third] = await enqueueFlow();
    expect(await workflows.finish(database.db, { job: timed, id: Number(second) }, 'by hand')).toBe(
      'finished',
    );
    await start();
    await until(async () => (await stateOf(third)) === 'completed');
  });
});

test('the last job of a batch ends at its deadline while others have not', async () => {
  const entries = [{ delayMs: 24 * HOUR_MS }, {}];
  const { lastId } = await workflows.enqueueBatch(database.db, before, entries, { last: timed });
  expect(await deadlineOf(lastId)).toBe(HOUR_MS);
  await anHourPasses();
  await start();
  await until(async () => (await stateOf(lastId)) === 'discarded');
  expect(ran.filter((kind) => kind === 'timed')).toEqual([]);
});

describe('a job that is claimed before those that it waits for have ended, and is not late', () => {
  test.each([
    ['has a longer deadline by now', longer, 'scheduled', 3 * HOUR_MS],
    ['has none any more', untimed, 'waiting', undefined],
  ] as const)('is put back where it %s, and runs after them', async (_, job, state, deadlineMs) => {
    const [, second] = await enqueueFlow();
    await claimable();
    await start([...others, handle(job, noted('timed'))]);
    await until(() => waited.includes(Number(second)));
    expect(await find(second)).toMatchObject({ state, attempt: 0, errors: [] });
    if (deadlineMs !== undefined) {
      const offMs = Math.abs(Number(await deadlineOf(second)) - deadlineMs);
      expect(offMs).toBeLessThan(10_000);
    }
    expect(ran).toEqual([]);
    await beginBefore();
    await until(async () => (await stateOf(second)) === 'completed');
    expect(ran.slice(0, 2)).toEqual(['before', 'timed']);
  });

  test('is put back in runNext, and by a batch handler', async () => {
    const [, second] = await enqueueFlow();
    await queue.runNow(database.db, Number(second));
    expect(await runNext(database.db, { queue, handlers })).toMatchObject({ outcome: 'waiting' });
    await queue.runNow(database.db, Number(second));
    const called = handleBatch(timed, { maxSize: 2, maxWaitMs: 1 }, async () => expect.unreachable());
    await start([...others, called]);
    await until(() => waited.includes(Number(second)));
    expect(await find(second)).toMatchObject({ state: 'scheduled', attempt: 0 });
  });

  test('is due at once where they end while it is held', async () => {
    const all = inContext({ ...tables, ...workflowTables }, { members: new TalliedEnds(workflowTables) });
    const [first, second] = await enqueueFlow();
    await claimable();
    const [job] = await claimJobs(database.db, all, claimOf({ kinds: ['timed'], limit: 1 }));
    expect(job).toMatchObject({ id: second, blockers: 1 });
    expect(await isBlocked(database.db, all, { id: Number(second), queue: 'q' })).toBe(true);
    await beginBefore();
    expect(await runNext(database.db, { queue, handlers: others })).toMatchObject({ job: { id: first } });
    await foldTallies(database.db, all, { channel: undefined, locks: 'briefly' });
    expect(await isBlocked(database.db, all, { id: Number(second), queue: 'q' })).toBe(false);
    const park = { type: 'park', delayMs: null, attempt: 0, error: null } as const;
    const held = { id: Number(second), fence: Number(job?.fence), transition: park };
    await parkJobs(database.db, all, { queue: 'q', workerId: 1 }, [held]);
    expect(await stateOf(second)).toBe('due');
  });

  test('does not begin where one of them fails while it is held', async () => {
    const all = inContext({ ...tables, ...workflowTables }, { members: new TalliedEnds(workflowTables) });
    const [first, second] = await enqueueFlow();
    await claimable();
    const [job] = await claimJobs(database.db, all, claimOf({ kinds: ['timed'], limit: 1 }));
    expect(job).toMatchObject({ id: second, blockers: 1, cancelReason: null });
    await queue.cancel(database.db, Number(first));
    await foldTallies(database.db, all, { channel: undefined, locks: 'briefly' });
    expect(await isBlocked(database.db, all, { id: Number(second), queue: 'q' })).toBe(true);
    const park = { type: 'park', delayMs: null, attempt: 0, error: null } as const;
    const held = { id: Number(second), fence: Number(job?.fence), transition: park };
    await parkJobs(database.db, all, { queue: 'q', workerId: 1 }, [held]);
    await start([...others, handle(timed, () => expect.unreachable())]);
    await until(async () => (await stateOf(second)) === 'cancelled');
  });
});

describe('a job that waits for its children', () => {
  const parent = defineJob('timed', { queue: 'q', deadlineMs: HOUR_MS, backoff: fixedBackoff(0) });

  test('ends at its deadline, and takes back what it has done', async () => {
    const undone: string[] = [];
    const waits = handle(parent, async ({ step }) => {
      try {
        await step.run('charge', { undo: () => void undone.push('charge') }, () => 1);
        await step.waitForJob(await step.enqueue('child', before, undefined, { delayMs: 24 * HOUR_MS }));
      } catch (error) {
        await step.undoAll(error);
        throw error;
      }
    });
    await start([...others, waits]);
    const { id } = await queue.enqueue(database.db, parent);
    await until(() => waited.includes(id));
    expect(await stateOf(id)).toBe('scheduled');
    await anHourPasses();
    await until(async () => (await stateOf(id)) === 'discarded');
    expect(undone).toEqual(['charge']);
  });

  test('is found by a recount whose fold could not write its row, but keeps a backoff', async () => {
    const all = { ...tables, ...workflowTables };
    await database.client`
      insert into queue_batches (id, total, pending, ended_at) overriding system value values (1, 1, 0, now())`;
    await database.client`
      insert into queue_jobs (id, queue, kind, payload, max_attempts, blockers, attempt, run_at)
      overriding system value
      values (1, 'q', 'k', '1', 3, -1, 0, now() + interval '1 hour'),
        (2, 'q', 'k', '1', 3, null, 1, now() + interval '1 hour')`;
    await database.client`
      insert into queue_waits (batch_id, job_id, queue, policy)
      values (1, 1, 'q', 'parent'), (1, 2, 'q', 'parent')`;
    expect([...(await findUnwoken(database.db, all, [1], 0))]).toEqual([['q', [1]]]);
    expect(await wakeWaiters(database.db, all, { queue: 'q', ids: [1, 2], channel: undefined })).toBe(1);
    const due = await database.client`select id::int from queue_jobs where run_at <= now()`;
    expect(due).toEqual([{ id: 1 }]);
  });
});
