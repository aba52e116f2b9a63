import {
  createQueue,
  createWorker,
  defineJob,
  defineSignal,
  fixedBackoff,
  handlersFor,
  unvalidated,
  workflowsIn,
} from 'drizzle-queue';
import * as workflowTables from 'drizzle-queue/schema/workflows';
import { beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { rescheduleJobs } from '../../src/core/queries/settle/reschedule-jobs.ts';
import { foldTallies } from '../../src/features/batches/queries/fold-tallies.ts';
import { clearTables, jobRow, tables } from '../queries/support/jobs.ts';
import { addWorkflowTables, clearWorkflowTables } from '../support/control-tables.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';

const database = useTestDatabase({ max: 10 });
const queue = createQueue({ tables, workflows: workflowsIn(workflowTables) });
const { handle } = handlersFor<typeof database.db, typeof queue>();
const answer = defineSignal('answer', unvalidated<number>());
const child = defineJob('child', { queue: 'children' });
const work = defineJob('work', {
  queue: 'q',
  output: unvalidated<unknown>(),
  backoff: fixedBackoff(3_600_000),
});

beforeAll(() => addWorkflowTables(database));
beforeEach(async () => {
  await clearTables(database.client);
  await clearWorkflowTables(database);
});

const jobOf = async (id: number) => await jobRow(database.client, id);
const anHourPasses = () => database.client`update queue_jobs set run_at = now() where run_at > now()`;

describe('the backoff of a job whose attempt has failed while it waited for something beside', () => {
  let fails = true;
  /** Its first attempt has failed, beside two waits. */
  async function failed(): Promise<number> {
    fails = true;
    const handlers = [
      handle(work, async ({ job, step }) => {
        const waits = async () => {
          const waiting = await step.enqueue('child', child);
          return await Promise.all([step.waitForJob(waiting), step.waitForSignal(answer)]);
        };
        const other = step.run('other', async () => {
          if (!fails) return;
          await until(async () => {
            const boxes = await database.client`select from queue_mailboxes where waiting`;
            return boxes.length > 0 && Number((await jobOf(job.id))?.blockers) < 0;
          });
          throw new Error('no');
        });
        return (await Promise.all([waits(), other]))[0][1];
      }),
    ];
    const worker = createWorker(database.db, {
      queue,
      handlers,
      queues: { q: { concurrency: 5 } },
      log: false,
    });
    onTestFinished(() => worker.stop());
    const { id } = await queue.enqueue(database.db, work);
    const ended = new Promise((resolve) => worker.on('failed', resolve));
    await worker.start();
    await ended;
    return id;
  }

  /** The child runs and ends, and that is counted. */
  async function childEnds(): Promise<void> {
    const worker = createWorker(database.db, { queue, handlers: [handle(child, () => {})], log: false });
    onTestFinished(() => worker.stop());
    await worker.start();
    await until(
      async () => (await database.client`select from queue_batches where ended_at is null`).length === 0,
    );
  }

  test('is not cut short by the end of its child, nor by its signal; the next attempt finds both', async () => {
    const id = await failed();
    const before = await jobOf(id);
    expect(before).toMatchObject({ attempt: 1, blockers: null });
    await childEnds();
    expect(await queue.workflows.signal(database.db, { id }, answer, 7)).toBe('sent');
    expect(await jobOf(id)).toEqual(before);
    fails = false;
    await anHourPasses();
    const record = await queue.waitFor(database.db, work, id, { timeoutMs: 60_000 });
    expect(record).toMatchObject({ state: 'completed', output: 7 });
  });

  test('is not taken for a wait by finish', async () => {
    const id = await failed();
    expect(await queue.workflows.finish(database.db, { job: work, id }, 1)).toBe('not-waiting');
  });
});

test('a job that is put back before it has begun goes on waiting for those before it', async () => {
  const [before, after] = (
    await queue.workflows.enqueueFlow(database.db, (flow) => {
      flow.add(work, undefined, { after: [flow.add(child)] });
    })
  ).jobIds;
  const id = Number(after);
  await database.client`update queue_jobs set worker_id = 1, claimed_at = now(), run_at = now() where id = ${id}`;
  const fence = Number((await jobOf(id))?.fence);
  const transition = {
    type: 'reschedule',
    delayMs: 3_600_000,
    attempt: 1,
    error: null,
    unbegun: true,
  } as const;
  const holder = { queue: 'q', workerId: 1 };
  await rescheduleJobs(database.db, queue.tables, holder, [{ id, fence, transition }]);
  expect(await jobOf(id)).toMatchObject({ worker_id: null, blockers: 1 });
  await database.client`delete from queue_jobs where id = ${Number(before)}`;
  await database.client`insert into queue_tallies (batch_id, ended) select id, 1 from queue_batches where pending > 0`;
  await foldTallies(database.db, { ...tables, ...workflowTables }, { channel: undefined, locks: 'wait' });
  expect((await queue.find(database.db, id))?.state).toBe('due');
});
