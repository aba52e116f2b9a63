import {
  createQueue,
  createWorker,
  defineJob,
  defineSignal,
  drain,
  fixedBackoff,
  handlersFor,
  MissingMigrationError,
  NonRetryableError,
  runNext,
  unvalidated,
  type Worker,
  workflowsIn,
} from 'drizzle-queue';
import * as workflowTables from 'drizzle-queue/schema/workflows';
import { beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { parkJobs } from '../../src/core/queries/settle/park-jobs.ts';
import { deleteLeftBatches } from '../../src/features/batches/queries/delete-left-batches.ts';
import { findUnwoken } from '../../src/features/batches/queries/find-unwoken.ts';
import { foldTallies } from '../../src/features/batches/queries/fold-tallies.ts';
import { wakeWaiters } from '../../src/features/batches/queries/wake-waiters.ts';
import { endAllMembers } from '../../src/features/batches/worker/move-on.ts';
import { clearTables, jobRow, tables } from '../queries/support/jobs.ts';
import { addWorkflowTables, clearWorkflowTables } from '../support/control-tables.ts';
import { gate } from '../support/gate.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';

const database = useTestDatabase({ max: 10 });
const queue = createQueue({ tables, workflows: workflowsIn(workflowTables) });
const { handle } = handlersFor<typeof database.db, typeof queue>();
const work = defineJob('work', {
  queue: 'q',
  payload: unvalidated<string>(),
  output: unvalidated<string>(),
  backoff: fixedBackoff(0),
  maxAttempts: 1,
});
const report = defineJob('report', {
  queue: 'reports',
  payload: unvalidated<string>(),
  output: unvalidated<unknown>(),
});

beforeAll(() => addWorkflowTables(database));
beforeEach(async () => {
  await clearTables(database.client);
  await clearWorkflowTables(database);
  ran.length = 0;
});

const ran: string[] = [];
/** A job of 'bad' is discarded. */
const handlers = [
  handle(work, async ({ payload }) => {
    ran.push(payload);
    if (payload.startsWith('bad')) throw new NonRetryableError(payload);
    return payload.toUpperCase();
  }),
  handle(report, async ({ payload, step }) => {
    ran.push(payload);
    return { counts: await step.parentCounts(), parents: await step.parents(work) };
  }),
];

async function start(): Promise<Worker> {
  const worker = createWorker(database.db, {
    queue,
    handlers,
    queues: { q: { concurrency: 20 }, reports: { concurrency: 5 } },
    log: false,
  });
  onTestFinished(() => worker.stop());
  await worker.start();
  return worker;
}

const { workflows } = queue;
const all = { ...tables, ...workflowTables };
const fold = async () => await foldTallies(database.db, all, { channel: undefined, locks: 'briefly' });
const work_ = async () => await drain(database.db, { queue, handlers, deadlineMs: 60_000 });

async function statesOf(ids: readonly number[]): Promise<(string | undefined)[]> {
  return await Promise.all(ids.map(async (id) => (await queue.find(database.db, id))?.state));
}

describe('a flow', () => {
  test('runs each job after those that it waits for', async () => {
    const { id, jobIds } = await workflows.enqueueFlow(database.db, (flow) => {
      const a = flow.add(work, 'a');
      const b = flow.add(work, 'b', { after: [a] });
      const c = flow.add(work, 'c', { after: [a] });
      flow.add(report, 'd', { after: [a, b, c] });
    });
    expect(jobIds).toHaveLength(4);
    expect(await statesOf(jobIds)).toEqual(['due', 'waiting', 'waiting', 'waiting']);
    await start();
    const { endedAt, ...flow } = await workflows.waitForFlow(database.db, id);
    expect(flow).toMatchObject({ id, total: 4, pending: 0, failed: 0, cancelReason: null });
    expect(endedAt).toBeInstanceOf(Date);
    expect(ran[0]).toBe('a');
    expect(ran[3]).toBe('d');
    expect(await queue.find(database.db, report, Number(jobIds[3]))).toMatchObject({
      output: {
        counts: { total: 3, completed: 3, failed: 0 },
        parents: [{ output: 'A' }, { output: 'B' }, { output: 'C' }],
      },
    });
  });

  test('exists with the transaction, or not at all', async () => {
    const build = database.db.transaction(async (tx) => {
      await workflows.enqueueFlow(tx, (flow) => {
        flow.add(work, 'b', { after: [flow.add(work, 'a')] });
      });
      throw new Error('rolled back');
    });
    await expect(build).rejects.toThrow('rolled back');
    const [row] = await database.client`
      select (select count(*)::int from queue_jobs) as jobs,
        (select count(*)::int from queue_batches) as batches`;
    expect(row).toEqual({ jobs: 0, batches: 0 });
  });

  test('cancels what comes after a failure, and what comes after that', async () => {
    const { id, jobIds } = await workflows.enqueueFlow(database.db, (flow) => {
      const bad = flow.add(work, 'bad');
      const good = flow.add(work, 'good');
      const b = flow.add(work, 'b', { after: [bad, good] });
      flow.add(work, 'c', { after: [b] });
      flow.add(report, 'd', { after: [b, good], onFailure: 'run' });
    });
    await start();
    expect(await workflows.waitForFlow(database.db, id)).toMatchObject({ total: 5, pending: 0, failed: 3 });
    expect(await statesOf(jobIds)).toEqual(['discarded', 'completed', 'cancelled', 'cancelled', 'completed']);
    expect(ran.sort()).toEqual(['bad', 'd', 'good']);
    expect(await queue.find(database.db, Number(jobIds[2]))).toMatchObject({
      errors: [{ message: 'A job that it waited for was discarded or cancelled' }],
    });
    expect(await queue.find(database.db, report, Number(jobIds[4]))).toMatchObject({
      output: {
        counts: { total: 2, completed: 1, failed: 1 },
        parents: [{ state: 'completed' }, { state: 'cancelled' }],
      },
    });
  });

  test('of 2,000 jobs before one, and 2,000 after one, takes a batch for each of the two', async () => {
    const { id } = await workflows.enqueueFlow(database.db, (flow) => {
      const first = flow.add(work, 'first');
      const middle = Array.from({ length: 2_000 }, (_, at) => flow.add(work, `m${at}`, { after: [first] }));
      flow.add(report, 'last', { after: middle });
    });
    const [row] = await database.client`select count(*)::int as batches from queue_batches`;
    expect(row).toEqual({ batches: 3 });
    expect(await work_()).toMatchObject({ completed: 2_002, empty: true });
    expect(await workflows.flow(database.db, id)).toMatchObject({ total: 2_002, pending: 0, failed: 0 });
    expect([ran[0], ran.at(-1)]).toEqual(['first', 'last']);
  });

  test('ends when it is cancelled: what waits without being run, what runs by its signal', async () => {
    let began = () => {};
    const running = new Promise<void>((resolve) => {
      began = resolve;
    });
    const worker = createWorker(database.db, {
      queue,
      handlers: [
        handle(work, async ({ signal }) => {
          began();
          await new Promise((resolve) => signal.addEventListener('abort', resolve));
          throw signal.reason;
        }),
        handle(report, async () => {}),
      ],
      log: false,
    });
    onTestFinished(() => worker.stop());
    const { id, jobIds } = await workflows.enqueueFlow(database.db, (flow) => {
      const a = flow.add(work, 'a');
      flow.add(report, 'later', { after: [flow.add(work, 'b', { after: [a] })] });
      flow.add(work, 'much later', { delayMs: 3_600_000 });
    });
    await worker.start();
    await running;
    expect(await workflows.cancelFlow(database.db, id, 'no longer wanted')).toBe(true);
    expect(await workflows.waitForFlow(database.db, id)).toMatchObject({
      pending: 0,
      failed: 4,
      cancelReason: 'no longer wanted',
    });
    expect(await statesOf(jobIds)).toEqual(['cancelled', 'cancelled', 'cancelled', 'cancelled']);
    expect(await workflows.cancelFlow(database.db, id)).toBe(false);
  });

  test('goes on at a job that is redriven before its failure was counted', async () => {
    const { id, jobIds } = await workflows.enqueueFlow(database.db, (flow) => {
      flow.add(report, 'last', { after: [flow.add(work, 'bad at first')], onFailure: 'run' });
    });
    // As a worker would that dies before it has counted.
    const member = Number(jobIds[0]);
    await database.db.transaction(async (tx) => {
      await tx.execute(`
        with ended as (delete from queue_jobs where id = ${member} returning *),
        tallied as (insert into queue_tallies (batch_id, ended, failed) select batch_id, 1, 1 from ended)
        insert into queue_results (job_id, queue, kind, payload, state, errors, attempt, max_attempts,
          priority, fence, batch_id, metadata, created_at, run_at)
        select id, queue, kind, '"good"', 'discarded', '[]', 1, max_attempts, priority, fence, batch_id,
          metadata, created_at, run_at from ended`);
    });
    expect(await queue.redrive(database.db, member)).toMatchObject({ redriven: 1 });
    await work_();
    expect(ran).toEqual(['good', 'last']);
    expect(await workflows.flow(database.db, id)).toMatchObject({ pending: 0, failed: 0 });
  });

  test('waits for all before a job that runs whatever has failed before it', async () => {
    const { jobIds } = await workflows.enqueueFlow(database.db, (flow) => {
      const [bad, good] = [flow.add(work, 'bad'), flow.add(work, 'good')];
      flow.add(work, 'of the good one', { after: [good] });
      flow.add(report, 'last', { after: [bad, good], onFailure: 'run' });
    });
    await queue.cancel(database.db, Number(jobIds[0]));
    expect(await fold()).toMatchObject({ tallies: 1, woken: [] });
    expect(await statesOf(jobIds)).toEqual(['cancelled', 'due', 'waiting', 'waiting']);
    await runNext(database.db, { queue, handlers, id: Number(jobIds[1]) });
    await fold();
    expect(await statesOf(jobIds)).toEqual(['cancelled', 'completed', 'due', 'due']);
  });

  test('that is redriven waits for a member that was redriven by itself before', async () => {
    const { id, jobIds } = await workflows.enqueueFlow(database.db, (flow) => {
      flow.add(work, 'after', { after: [flow.add(work, 'bad one'), flow.add(work, 'bad two')] });
    });
    await work_();
    await database.client`update queue_results set payload = '"mended"' where state = 'discarded'`;
    const [one, two] = jobIds.map(Number);
    expect(await queue.redrive(database.db, Number(one))).toMatchObject({ redriven: 1 });
    expect(await fold()).toMatchObject({ tallies: 1, woken: [] });
    // It has ended, and those that wait for its end have been told.
    expect((await workflows.flow(database.db, id))?.endedAt).not.toBeNull();
    expect(await workflows.redriveFlow(database.db, id)).toBe(2);
    await runNext(database.db, { queue, handlers, id: Number(one) });
    await fold();
    expect(await statesOf(jobIds)).toEqual(['completed', 'due', 'waiting']);
    await runNext(database.db, { queue, handlers, id: Number(two) });
    await fold();
    expect(await statesOf(jobIds)).toEqual(['completed', 'completed', 'due']);
    await work_();
    expect(await workflows.flow(database.db, id)).toMatchObject({ pending: 0, failed: 0 });
  });

  test('has all its jobs in its counts for as long as it is open, although no result of them is kept', async () => {
    const unkept = defineJob('unkept', { queue: 'q', payload: unvalidated<string>(), keepResult: false });
    const { id } = await workflows.enqueueFlow(database.db, (flow) => {
      const second = flow.add(unkept, 'second', { after: [flow.add(unkept, 'first')] });
      flow.add(work, 'third', { after: [second] });
    });
    // None has a handler for the third.
    await drain(database.db, { queue, handlers: [handle(unkept, async () => {})], deadlineMs: 60_000 });
    await database.client`update queue_batches set ended_at = ended_at - interval '1 day'`;
    await deleteLeftBatches(database.db, all, { after: 0, until: undefined });
    expect(await workflows.flow(database.db, id)).toMatchObject({ total: 3, pending: 1, endedAt: null });
  });

  test('that is redriven begins no job again when a child of its first run ends', async () => {
    const [first, second, kid] = [
      defineJob('first', { queue: 'q', maxAttempts: 1 }),
      defineJob('second', { queue: 'q', maxAttempts: 1 }),
      defineJob('kid', { queue: 'q' }),
    ];
    const isAwaited = async () => {
      const [row] =
        await database.client`select count(*)::int as batches from queue_batches where waiting = 'end'`;
      return row?.batches === 1;
    };
    const ofFlow = [
      handle(first, async () => {
        throw new Error('failed');
      }),
      handle(second, async ({ step }) => {
        const child = await step.enqueue('kid', kid);
        await Promise.all([
          step.allEnded('its end', [child]),
          step.run('beside', async () => {
            await until(isAwaited);
            throw new Error('failed');
          }),
        ]);
      }),
    ];
    const { id, jobIds } = await workflows.enqueueFlow(database.db, (flow) => {
      flow.add(second, undefined, { after: [flow.add(first)], onFailure: 'run' });
    });
    await drain(database.db, { queue, handlers: ofFlow, deadlineMs: 60_000 });
    expect(await statesOf(jobIds)).toEqual(['discarded', 'discarded']);
    expect(await workflows.redriveFlow(database.db, id)).toBe(2);
    await drain(database.db, { queue, handlers: [handle(kid, async () => {})], deadlineMs: 60_000 });
    expect(await statesOf(jobIds)).toEqual(['due', 'waiting']);
  });

  test('goes on where it has failed when it is redriven', async () => {
    const { id, jobIds } = await workflows.enqueueFlow(database.db, (flow) => {
      const good = flow.add(work, 'good');
      const bad = flow.add(work, 'bad');
      const b = flow.add(work, 'b', { after: [bad, good] });
      const c = flow.add(work, 'c', { after: [b] });
      flow.add(report, 'd', { after: [b, c, good] });
    });
    await work_();
    expect(await statesOf(jobIds)).toEqual(['completed', 'discarded', 'cancelled', 'cancelled', 'cancelled']);
    await database.client`update queue_results set payload = '"mended"' where payload = '"bad"'`;
    expect(await workflows.redriveFlow(database.db, id)).toBe(4);
    expect(await statesOf(jobIds)).toEqual(['completed', 'due', 'waiting', 'waiting', 'waiting']);
    expect(await workflows.redriveFlow(database.db, id)).toBe(0);
    ran.length = 0;
    await work_();
    expect(ran).toEqual(['mended', 'b', 'c', 'd']);
    expect(await workflows.flow(database.db, id)).toMatchObject({ total: 5, pending: 0, failed: 0 });
    expect(await queue.find(database.db, report, Number(jobIds[4]))).toMatchObject({
      output: { counts: { total: 3, completed: 3, failed: 0 } },
    });
  });

  test('ends again what a job has failed before whose result is no longer kept', async () => {
    const { id, jobIds } = await workflows.enqueueFlow(database.db, (flow) => {
      const bad = flow.add(work, 'bad');
      flow.add(work, 'after', { after: [bad] });
      flow.add(report, 'report', { after: [bad], onFailure: 'run' });
    });
    await work_();
    expect(await statesOf(jobIds)).toEqual(['discarded', 'cancelled', 'completed']);
    await database.client`delete from queue_results where job_id = ${Number(jobIds[0])}`;
    expect(await workflows.redriveFlow(database.db, id)).toBe(1);
    expect(await statesOf(jobIds)).toEqual([undefined, 'waiting', 'completed']);
    await work_();
    expect(await statesOf(jobIds)).toEqual([undefined, 'cancelled', 'completed']);
    expect(ran).toEqual(['bad', 'report']);
    expect(await workflows.flow(database.db, id)).toMatchObject({ pending: 0, endedAt: expect.any(Date) });
  });

  test('lets what was put back by itself go on, though the result of what had failed before it is gone', async () => {
    const { id, jobIds } = await workflows.enqueueFlow(database.db, (flow) => {
      const bad = flow.add(work, 'bad');
      flow.add(work, 'after', { after: [bad] });
      flow.add(work, 'bad beside');
    });
    await work_();
    expect(await statesOf(jobIds)).toEqual(['discarded', 'cancelled', 'discarded']);
    expect(await queue.redrive(database.db, { id: Number(jobIds[1]), state: 'cancelled' })).toMatchObject({
      redriven: 1,
    });
    // As if it had begun, and slept.
    await database.client`update queue_jobs set run_at = now() + interval '1 hour'`;
    await database.client`delete from queue_results where job_id = ${Number(jobIds[0])}`;
    await database.client`update queue_results set payload = '"mended"'`;
    expect(await workflows.redriveFlow(database.db, id)).toBe(1);
    await work_();
    expect(await statesOf(jobIds)).toEqual([undefined, 'scheduled', 'completed']);
  });

  test('lets what has not begun wait again for a job that was put back by itself before', async () => {
    const { id, jobIds } = await workflows.enqueueFlow(database.db, (flow) => {
      flow.add(report, 'last', { after: [flow.add(work, 'bad')], onFailure: 'run' });
    });
    const first = Number(jobIds[0]);
    await runNext(database.db, { queue, handlers, id: first });
    await fold();
    expect(await statesOf(jobIds)).toEqual(['discarded', 'due']);
    expect(await queue.redrive(database.db, first)).toMatchObject({ redriven: 1 });
    expect(await workflows.redriveFlow(database.db, id)).toBe(0);
    expect(await statesOf(jobIds)).toEqual(['due', 'waiting']);
    await work_();
    expect(ran).toEqual(['bad', 'bad', 'last']);
  });

  test('that is redriven before what was to end for its failure has ended goes on with that', async () => {
    const { id, jobIds } = await workflows.enqueueFlow(database.db, (flow) => {
      flow.add(work, 'after', { after: [flow.add(work, 'bad')] });
    });
    await runNext(database.db, { queue, handlers, id: Number(jobIds[0]) });
    await fold();
    expect(await statesOf(jobIds)).toEqual(['discarded', 'due']);
    await database.client`update queue_results set payload = '"mended"' where state = 'discarded'`;
    expect(await workflows.redriveFlow(database.db, id)).toBe(1);
    expect(await statesOf(jobIds)).toEqual(['due', 'waiting']);
    await work_();
    expect(await statesOf(jobIds)).toEqual(['completed', 'completed']);
    expect(await workflows.flow(database.db, id)).toMatchObject({ pending: 0, failed: 0 });
  });

  test('that is redriven leaves alone what waits in its middle: its times are kept', async () => {
    const nap = defineJob('nap', { queue: 'q', deadlineMs: 7_200_000 });
    const naps = handle(nap, async ({ step }) => await step.sleep('nap', 3_600_000));
    const { id, jobIds } = await workflows.enqueueFlow(database.db, (flow) => {
      flow.add(nap, undefined, { after: [flow.add(work, 'bad')], onFailure: 'run' });
    });
    await drain(database.db, { queue, handlers: [...handlers, naps], deadlineMs: 60_000 });
    const before = await queue.find(database.db, Number(jobIds[1]));
    expect(before).toMatchObject({ state: 'scheduled' });
    expect(await workflows.redriveFlow(database.db, id)).toBe(1);
    expect(await queue.find(database.db, Number(jobIds[1]))).toEqual(before);
    await work_();
    expect(ran).toEqual(['bad', 'bad']);
    expect(await queue.find(database.db, Number(jobIds[1]))).toEqual(before);
  });

  test('that is redriven leaves alone what waits for its own jobs, or is about to go on', async () => {
    const answer = defineSignal('answer');
    const parent = defineJob('parent', { queue: 'q' });
    const asking = defineJob('asking', { queue: 'q' });
    const those = [
      ...handlers,
      handle(parent, async ({ step }) => {
        await step.waitForJob(await step.enqueue('child', work, 'child', { delayMs: 3_600_000 }));
      }),
      handle(asking, async ({ step }) => await step.waitForSignal(answer)),
    ];
    const { id, jobIds } = await workflows.enqueueFlow(database.db, (flow) => {
      const bad = flow.add(work, 'bad');
      for (const job of [parent, asking]) flow.add(job, undefined, { after: [bad], onFailure: 'run' });
    });
    await drain(database.db, { queue, handlers: those, deadlineMs: 60_000 });
    await workflows.signal(database.db, { id: Number(jobIds[2]) }, answer);
    const waiting = () => Promise.all(jobIds.slice(1).map((id) => jobRow(database.client, id)));
    const before = await waiting();
    expect(await statesOf(jobIds)).toEqual(['discarded', 'waiting', 'due']);
    expect(await workflows.redriveFlow(database.db, id)).toBe(1);
    expect(await waiting()).toEqual(before);
  });

  test('that is redriven lets what has begun go on: a signal reaches it, although a job before it runs again', async () => {
    const go = defineSignal('go');
    const asking = defineJob('asking', { queue: 'q', output: unvalidated<string>() });
    const those = [
      ...handlers,
      handle(asking, async ({ step }) => {
        const child = await step.enqueue('child', work, 'child', { delayMs: 3_600_000 });
        return (await step.first('which', { child, go })).key;
      }),
    ];
    const { id, jobIds } = await workflows.enqueueFlow(database.db, (flow) => {
      flow.add(asking, undefined, { after: [flow.add(work, 'bad')], onFailure: 'run' });
    });
    const [before, after] = jobIds.map(Number);
    const run = () => drain(database.db, { queue, handlers: those, deadlineMs: 60_000 });
    await run();
    expect(await statesOf(jobIds)).toEqual(['discarded', 'waiting']);
    await database.client`update queue_results set payload = '"later"' where job_id = ${before ?? 0}`;
    expect(await workflows.redriveFlow(database.db, id)).toBe(1);
    // It takes its time.
    await database.client`update queue_jobs set run_at = now() + interval '1 hour' where id = ${before ?? 0}`;
    await workflows.signal(database.db, { id: after ?? 0 }, go);
    await run();
    expect(await queue.find(database.db, asking, after ?? 0)).toMatchObject({
      state: 'completed',
      output: 'go',
    });
  });

  test('that is redriven goes on, although a recount looks before the return of the failed job is counted', async () => {
    const { id, jobIds } = await workflows.enqueueFlow(database.db, (flow) => {
      flow.add(work, 'after', { after: [flow.add(work, 'bad')] });
    });
    await work_();
    await database.client`update queue_results set payload = '"mended"' where payload = '"bad"'`;
    expect(await workflows.redriveFlow(database.db, id)).toBe(2);
    const batches = await database.client`select id::int from queue_batches`;
    const batchIds = batches.map((batch) => Number(batch.id));
    expect(await findUnwoken(database.db, all, batchIds, 0)).toEqual(new Map());
    const wake = { queue: 'q', ids: [Number(jobIds[1])], channel: undefined };
    expect(await wakeWaiters(database.db, all, wake)).toBe(0);
    await work_();
    expect(await statesOf(jobIds)).toEqual(['completed', 'completed']);
  });

  test('that is redriven and fails again cancels what comes after it again', async () => {
    const { id, jobIds } = await workflows.enqueueFlow(database.db, (flow) => {
      flow.add(work, 'after', { after: [flow.add(work, 'bad'), flow.add(work, 'good')] });
    });
    await work_();
    expect(await workflows.redriveFlow(database.db, id)).toBe(2);
    await work_();
    expect(await statesOf(jobIds)).toEqual(['discarded', 'completed', 'cancelled']);
    expect(await workflows.flow(database.db, id)).toMatchObject({ pending: 0, failed: 2 });
    expect(ran.sort()).toEqual(['bad', 'bad', 'good']);
  });

  test('that was cancelled goes on when it is redriven', async () => {
    const { id, jobIds } = await workflows.enqueueFlow(database.db, (flow) => {
      flow.add(report, 'last', { after: [flow.add(work, 'first', { delayMs: 3_600_000 })] });
    });
    await workflows.cancelFlow(database.db, id);
    await work_();
    expect(await statesOf(jobIds)).toEqual(['cancelled', 'cancelled']);
    expect(await workflows.redriveFlow(database.db, id)).toBe(2);
    await work_();
    expect(await statesOf(jobIds)).toEqual(['completed', 'completed']);
    expect(await workflows.flow(database.db, id)).toMatchObject({
      pending: 0,
      failed: 0,
      cancelReason: null,
    });
  });

  test.each(['at once', 'once that is counted', 'once its jobs were told'])(
    'that was cancelled and is redriven %s goes on, and so does what has not ended yet',
    async (when) => {
      const { id, jobIds } = await workflows.enqueueFlow(database.db, (flow) => {
        flow.add(work, 'last', { after: [flow.add(work, 'one'), flow.add(work, 'two')] });
      });
      const single = await queue.enqueue(database.db, work, 'single');
      await runNext(database.db, { queue, handlers, id: Number(jobIds[0]) });
      await workflows.cancelFlow(database.db, id);
      if (when !== 'at once') {
        const { unwanted } = await fold();
        expect(unwanted).toHaveLength(2);
        if (when === 'once its jobs were told') {
          expect(await endAllMembers(database.db, all, unwanted, undefined)).toEqual(new Set(['q']));
        }
      }
      expect(await workflows.redriveFlow(database.db, id)).toBe(0);
      expect(await statesOf(jobIds)).toEqual(['completed', 'due', 'waiting']);
      await work_();
      expect(await statesOf([...jobIds, single.id])).toEqual([
        ...['completed', 'completed', 'completed'],
        'completed',
      ]);
      expect(ran.slice(-1)).not.toEqual(['one']);
      expect(await workflows.flow(database.db, id)).toMatchObject({
        pending: 0,
        failed: 0,
        cancelReason: null,
      });
    },
  );

  test('that was cancelled and is redriven begins nothing early when the worker dies that was to end it', async () => {
    const { client } = database;
    const { id, jobIds } = await workflows.enqueueFlow(database.db, (flow) => {
      flow.add(report, 'last', { after: [flow.add(work, 'first')] });
    });
    const last = Number(jobIds[1]);
    await queue.pause(database.db, 'q');
    await workflows.cancelFlow(database.db, id);
    await endAllMembers(database.db, all, (await fold()).unwanted, undefined);
    const [dead] = await client`insert into queue_workers (name, queues) values ('dead', '[]') returning id`;
    const [told] = await client`
      update queue_jobs set worker_id = ${dead?.id}, fence = fence + 1, attempt = attempt + 1, claimed_at = now()
      where id = ${last} returning fence`;
    await workflows.redriveFlow(database.db, id);
    await client`delete from queue_workers where id = ${dead?.id}`;
    await start();
    await until(async () => {
      const [job] = await client`select worker_id, fence from queue_jobs where id = ${last}`;
      // It was claimed once more, and put back.
      return job === undefined || (job.worker_id === null && job.fence !== told?.fence);
    });
    expect(ran).toEqual([]);
    expect(await statesOf(jobIds)).toEqual(['due', 'waiting']);
    await queue.resume(database.db, 'q');
    await until(async () => (await workflows.flow(database.db, id))?.endedAt !== null);
    expect(await statesOf(jobIds)).toEqual(['completed', 'completed']);
  });

  test('that was cancelled and is redriven twice begins nothing early that had begun before the first time', async () => {
    const { client, db } = database;
    const { id, jobIds } = await workflows.enqueueFlow(db, (flow) => {
      flow.add(report, 'last', { after: [flow.add(work, 'bad', { maxAttempts: 1 })], onFailure: 'run' });
    });
    const [first, last] = jobIds.map(Number);
    const fails = handle(report, async ({ step }) => {
      await step.run('begun', () => undefined);
      throw new NonRetryableError('no');
    });
    await drain(db, { queue, handlers: [...handlers.slice(0, 1), fails], deadlineMs: 60_000 });
    expect(await statesOf(jobIds)).toEqual(['discarded', 'discarded']);
    expect(await workflows.redriveFlow(db, id)).toBe(2);
    await fold();
    await workflows.cancelFlow(db, id);
    await endAllMembers(db, all, (await fold()).unwanted, undefined);
    expect(await workflows.redriveFlow(db, id)).toBe(0);
    expect(await statesOf(jobIds)).toEqual(['due', 'waiting']);
    expect(await jobRow(client, last ?? 0)).toMatchObject({ blockers: 1 });
    await runNext(db, { queue, handlers, id: first });
    await work_();
    expect(ran.slice(-1)).toEqual(['last']);
  });

  test('that is redriven while one of its jobs is put back begins that after all that are in front of it', async () => {
    const { client, db } = database;
    const { id, jobIds } = await workflows.enqueueFlow(db, (flow) => {
      const bad = flow.add(work, 'bad', { maxAttempts: 1 });
      const good = flow.add(work, 'good', { delayMs: 3_600_000 });
      flow.add(report, 'both', { after: [bad, good], onFailure: 'run' });
      flow.add(report, 'one', { after: [good] });
    });
    const [bad, good, both] = jobIds.map(Number);
    await runNext(db, { queue, handlers, id: bad });
    await fold();
    // It is claimed at its deadline, and that it must not begin is just being found out.
    const [held] = await client`
      update queue_jobs set worker_id = 7, fence = fence + 1, attempt = attempt + 1, claimed_at = now()
      where id = ${both ?? 0} returning fence::float8`;
    expect(await workflows.redriveFlow(db, id)).toBe(1);
    const transition = { type: 'park', attempt: 0, delayMs: null, error: null } as const;
    const wait = { id: both ?? 0, fence: Number(held?.fence), transition };
    await parkJobs(db, all, { queue: 'reports', workerId: 7 }, [wait]);
    await client`update queue_jobs set run_at = now() + interval '1 hour' where id = ${bad ?? 0}`;
    await queue.runNow(db, good ?? 0);
    await work_();
    expect(await statesOf(jobIds)).toEqual(['scheduled', 'completed', 'waiting', 'completed']);
    await queue.runNow(db, bad ?? 0);
    await work_();
    expect((await statesOf(jobIds)).slice(2)).toEqual(['completed', 'completed']);
  });

  test('that was cancelled and is redriven leaves the cancel of a single job as it is', async () => {
    const { id, jobIds } = await workflows.enqueueFlow(database.db, (flow) => {
      flow.add(work, 'one');
      flow.add(work, 'two');
    });
    await database.client`update queue_jobs set cancel_reason = 'not this one' where id = ${Number(jobIds[0])}`;
    await workflows.cancelFlow(database.db, id);
    await endAllMembers(database.db, all, (await fold()).unwanted, undefined);
    await workflows.redriveFlow(database.db, id);
    await work_();
    expect(await statesOf(jobIds)).toEqual(['cancelled', 'completed']);
  });

  test('that was cancelled lets a job run that was redriven by itself after its end', async () => {
    const { id, jobIds } = await workflows.enqueueFlow(database.db, (flow) => {
      flow.add(work, 'one');
    });
    await workflows.cancelFlow(database.db, id);
    await endAllMembers(database.db, all, (await fold()).unwanted, undefined);
    await work_();
    expect(await workflows.flow(database.db, id)).toMatchObject({ pending: 0, failed: 1 });
    const [jobId = Number.NaN] = jobIds;
    expect(await queue.redrive(database.db, { id: jobId, state: 'cancelled' })).toMatchObject({
      redriven: 1,
    });
    // A worker goes on asking for some seconds, since members may have been locked.
    expect(await endAllMembers(database.db, all, [id], undefined)).toEqual(new Set());
    await work_();
    expect(await statesOf(jobIds)).toEqual(['completed']);
    expect(ran).toEqual(['one']);
  });

  test('that is cancelled ends although its queue is paused, and so does what comes after a failure', async () => {
    const worker = await start();
    const flows = await Promise.all(
      ['bad', 'good'].map((first) =>
        workflows.enqueueFlow(database.db, (flow) => {
          flow.add(report, 'after', { after: [flow.add(work, first, { delayMs: 3_600_000 })] });
        }),
      ),
    );
    const [failing, cancelled] = flows;
    if (failing === undefined || cancelled === undefined) throw new Error('no flows');
    await queue.pause(database.db, 'reports');
    await queue.runNow(database.db, Number(failing.jobIds[0]));
    await until(async () => (await statesOf(failing.jobIds))[0] === 'discarded');
    await queue.pause(database.db, 'q');
    await workflows.cancelFlow(database.db, cancelled.id);
    // A worker hears of a pause within a second, and may have ended one before.
    const told = async () => {
      const rows = await database.client`
        select id from queue_jobs where cancel_reason is not null and worker_id is null
        union all select job_id from queue_results where state = 'cancelled'`;
      return rows.length;
    };
    await until(async () => (await told()) === 3);
    await worker.stop();
    // No claim has taken them for a minute; the first recount of a worker is soon after its start.
    await database.client`update queue_jobs set run_at = now() - interval '1 minute' where cancel_reason is not null`;
    await start();
    for (const { id, jobIds } of flows) {
      await until(async () => (await workflows.flow(database.db, id))?.endedAt !== null);
      expect((await statesOf(jobIds)).slice(-1)).toEqual(['cancelled']);
    }
    const record = await queue.find(database.db, report, Number(cancelled.jobIds[1]));
    expect(record?.errors).toMatchObject([{ name: 'Cancelled', message: 'The flow was cancelled' }]);
    expect(ran).toEqual(['bad']);
  });

  test('that is cancelled in a paused queue ends, but for a job whose row refuses it', async () => {
    const { client } = database;
    const flow = await workflows.enqueueFlow(database.db, (flow) => {
      for (const payload of ['good', 'refused', 'good', 'good']) flow.add(work, payload);
    });
    const [, refused] = flow.jobIds;
    await client`
      update queue_batches set cancel_reason = 'no longer wanted'`;
    await client`
      update queue_jobs set cancel_reason = 'no longer wanted', run_at = now() - interval '1 minute'`;
    await client.unsafe(`
      create function refuse() returns trigger language plpgsql as $$ begin
        if new.job_id = ${refused} then raise 'refused'; end if;
        return new;
      end $$;
      create trigger refuse before insert on queue_results for each row execute function refuse()`);
    onTestFinished(async () => {
      await client`drop function refuse cascade`;
      await queue.resume(database.db, 'q');
    });
    await queue.pause(database.db, 'q');
    const worker = createWorker(database.db, { queue, handlers, queues: { q: {} }, log: false });
    onTestFinished(() => worker.stop());
    const errors: string[] = [];
    worker.on('error', ({ during }) => errors.push(during));
    await worker.start();
    await until(async () => (await workflows.flow(database.db, flow.id))?.pending === 1);
    expect(await statesOf(flow.jobIds)).toEqual(['cancelled', 'due', 'cancelled', 'cancelled']);
    await until(() => errors.includes('counting batches again'));
  });

  test('takes a setting that is undefined as one that is left out', async () => {
    const { jobIds } = await workflows.enqueueFlow(database.db, (flow) => {
      flow.add(work, 'b', { after: [flow.add(work, 'a')], delayMs: undefined, runAt: undefined });
    });
    await work_();
    expect(await statesOf(jobIds)).toEqual(['completed', 'completed']);
  });

  test('refuses what cannot be one', async () => {
    const { db } = database;
    const flow = (build: Parameters<typeof workflows.enqueueFlow>[1]) => workflows.enqueueFlow(db, build);
    await expect(flow(() => {})).rejects.toThrow('enqueueFlow: the flow has no job');
    await expect(
      flow((one) => {
        one.add(work, 'a', { after: [{ job: work }] });
      }),
    ).rejects.toThrow(`enqueueFlow: 'work': after takes what add() of this flow has returned`);
    await expect(
      flow((one) => {
        one.add(work, 'b', { after: [one.add(work, 'a')], delayMs: 5 });
      }),
    ).rejects.toThrow(`enqueueFlow: 'work': with after there is no delayMs or runAt; let its handler sleep`);
    await expect(
      flow((one) => {
        // @ts-expect-error: the policy has another name
        one.add(work, 'b', { after: [one.add(work, 'a')], onFailure: 'ignore' });
      }),
    ).rejects.toThrow(`onFailure must be 'cancel' or 'run', got 'ignore'`);
    await expect(
      flow((one) => {
        // @ts-expect-error: the option has another name
        one.add(work, 'a', { delay: 5 });
      }),
    ).rejects.toThrow("enqueueFlow: 'work': unknown option 'delay'; did you mean delayMs?");
    const late = gate();
    const adding: Promise<unknown>[] = [];
    const { jobIds } = await flow((one) => {
      const first = one.add(work, 'a');
      for (const name of ['b', 'c']) {
        // As in a forEach with an async function.
        const add = async () => await late.opened.then(() => one.add(work, name, { after: [first] }));
        adding.push(add());
      }
    });
    late.open();
    expect(jobIds).toHaveLength(1);
    for (const added of adding) {
      await expect(added).rejects.toThrow("enqueueFlow: flow.add('work') came after the end of the function");
    }
    await expect(workflows.waitForFlow(db, 4711)).rejects.toThrow('waitForFlow: there is no flow 4711');
    await expect(workflows.waitForFlow(db, 4711, null as never)).rejects.toThrow(
      'waitForFlow: options must be an object, got null',
    );
    await expect(workflows.waitForFlow(db, 4711, { timeout: 5 } as never)).rejects.toThrow(
      "waitForFlow: unknown option 'timeout'; did you mean timeoutMs?",
    );
  });
});

describe('a batch', () => {
  test('of any number of jobs has one last job', async () => {
    async function* letters() {
      for (let at = 0; at < 3_000; at++) yield { payload: at % 1_000 === 7 ? `bad ${at}` : `letter ${at}` };
    }
    const { id, enqueued, duplicates, lastId } = await workflows.enqueueBatch(database.db, work, letters(), {
      last: report,
      payload: 'report',
    });
    expect({ enqueued, duplicates }).toEqual({ enqueued: 3_000, duplicates: 0 });
    expect(await work_()).toMatchObject({ completed: 2_998, discarded: 3, empty: true });
    expect(ran.filter((payload) => payload === 'report')).toHaveLength(1);
    expect(ran.at(-1)).toBe('report');
    expect(await workflows.flow(database.db, id)).toMatchObject({ total: 3_000, pending: 0, failed: 3 });
    const record = await queue.find(database.db, report, lastId);
    expect(record).toMatchObject({ output: { counts: { total: 3_000, completed: 2_997, failed: 3 } } });
  });

  test('without jobs runs its last job at once', async () => {
    const { enqueued } = await workflows.enqueueBatch(database.db, work, [], {
      last: report,
      payload: 'report',
    });
    expect(enqueued).toBe(0);
    expect(await work_()).toMatchObject({ completed: 1 });
  });

  test('leaves out jobs whose key is taken', async () => {
    await queue.enqueue(database.db, work, 'standing', { uniqueKey: 'a', delayMs: 3_600_000 });
    const entries = ['a', 'b'].map((payload) => ({ payload, uniqueKey: payload }));
    const batch = await workflows.enqueueBatch(database.db, work, entries, {
      last: report,
      payload: 'report',
    });
    expect(batch).toMatchObject({ enqueued: 1, duplicates: 1 });
    await work_();
    expect(ran).toEqual(['b', 'report']);
  });

  test('that is cancelled still has its last job', async () => {
    const entries = Array.from({ length: 2_500 }, (_, at) => ({ payload: `${at}`, delayMs: 3_600_000 }));
    const { id, lastId } = await workflows.enqueueBatch(database.db, work, entries, {
      last: report,
      payload: 'report',
    });
    expect(await workflows.cancelFlow(database.db, id)).toBe(true);
    await work_();
    expect(ran).toEqual(['report']);
    const record = await queue.find(database.db, report, lastId);
    expect(record).toMatchObject({ output: { counts: { total: 2_500, completed: 0, failed: 2_500 } } });
  });

  test('leaves nothing behind when it is refused, in a transaction that goes on', async () => {
    const entries = Array.from({ length: 1_001 }, (_, at) => ({
      payload: 'a',
      delayMs: at < 1_000 ? 0 : -1,
    }));
    await database.db.transaction(async (tx) => {
      await queue.enqueue(tx, work, 'before');
      const refused = workflows.enqueueBatch(tx, work, entries, { last: report, payload: 'report' });
      await expect(refused).rejects.toThrow(RangeError);
      await queue.enqueue(tx, work, 'after');
    });
    expect(await database.client`select from queue_batches`).toHaveLength(0);
    await work_();
    expect(ran.sort()).toEqual(['after', 'before']);
  });

  test('is kept for its last job, which asks for it again when it is redriven a day later', async () => {
    const unkept = defineJob('unkept', { queue: 'q', payload: unvalidated<string>(), keepResult: false });
    const last = defineJob('last', { queue: 'q', output: unvalidated<unknown>(), maxAttempts: 1 });
    let isMended = false;
    const run = async () =>
      await drain(database.db, {
        queue,
        deadlineMs: 60_000,
        handlers: [
          handle(unkept, async () => {}),
          handle(last, async ({ step }) => {
            if (!isMended) throw new Error('a mistake');
            return await step.parentCounts();
          }),
        ],
      });
    const entries = [{ payload: 'a' }, { payload: 'b' }];
    const { id, lastId } = await workflows.enqueueBatch(database.db, unkept, entries, { last });
    await run();
    expect(await statesOf([lastId])).toEqual(['discarded']);
    await database.client`update queue_batches set ended_at = ended_at - interval '1 day'`;
    await deleteLeftBatches(database.db, all, { after: 0, until: undefined });
    expect(await workflows.flow(database.db, id)).toMatchObject({ total: 2, pending: 0 });
    isMended = true;
    expect(await queue.redrive(database.db, { id: lastId })).toMatchObject({ redriven: 1 });
    await run();
    expect(await queue.find(database.db, last, lastId)).toMatchObject({
      state: 'completed',
      output: { total: 2, completed: 2, failed: 0 },
    });
    await database.client`delete from queue_results`;
    await deleteLeftBatches(database.db, all, { after: 0, until: undefined });
    expect(await workflows.flow(database.db, id)).toBeUndefined();
  });

  test('names itself where one of its entries is wrong', async () => {
    const ofEntry = (entry: object) =>
      // @ts-expect-error: the option has another name
      workflows.enqueueBatch(database.db, work, [entry], { last: report, payload: 'report' });
    await expect(ofEntry({ payload: 'a', delay: 5 })).rejects.toThrow(
      "enqueueBatch('work') takes [{ payload, … }]: unknown option 'delay'; did you mean delayMs?",
    );
    const last = { last: report, payload: 'report', prior: 5 };
    await expect(workflows.enqueueBatch(database.db, work, [], last)).rejects.toThrow(
      "enqueueBatch: last: unknown option 'prior'; did you mean priority?",
    );
    const late = { last: report, payload: 'report', delayMs: 5 };
    await expect(workflows.enqueueBatch(database.db, work, [], late)).rejects.toThrow(
      'enqueueBatch: last: there is no delayMs or runAt; let its handler sleep',
    );
    for (const entries of [undefined, 5, {}]) {
      // @ts-expect-error: no entries
      const none = workflows.enqueueBatch(database.db, work, entries, { last: report, payload: 'report' });
      await expect(none).rejects.toThrow("enqueueBatch('work') takes [{ payload, … }], got ");
    }
    expect(await database.client`select from queue_batches`).toHaveLength(0);
  });

  test('is not there when one of its jobs is wrong', async () => {
    const entries = [{ payload: 'a' }, { payload: 'b', delayMs: -1 }];
    const wrong = workflows.enqueueBatch(database.db, work, entries, { last: report, payload: 'report' });
    await expect(wrong).rejects.toThrow(RangeError);
    await until(async () => {
      const [row] = await database.client`select count(*)::int as jobs from queue_jobs`;
      return row?.jobs === 0;
    });
  });
});

describe('without the tables of workflows', () => {
  const bare = useTestDatabase();

  test('a cancel names the line that the schema lacks', async () => {
    const { id } = await createQueue({ tables }).enqueue(bare.db, work, 'a');
    const failed = queue.cancel(bare.db, id, { force: true });
    await expect(failed).rejects.toThrow(MissingMigrationError);
    await expect(failed).rejects.toThrow("`export * from 'drizzle-queue/schema/workflows'`");
  });
});
