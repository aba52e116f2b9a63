import {
  createQueue,
  createWorker,
  defineJob,
  fixedBackoff,
  handlersFor,
  NoAnswerError,
  NonRetryableError,
  unvalidated,
  workflowsIn,
} from 'drizzle-queue';
import { queueJobs } from 'drizzle-queue/schema';
import * as workflowTables from 'drizzle-queue/schema/workflows';
import { expect, onTestFinished, test } from 'vitest';
import { tables } from '../queries/support/jobs.ts';
import { addWorkflowTables } from '../support/control-tables.ts';
import { depth } from '../support/depth.ts';
import { useTestDatabase } from '../support/test-database.ts';

const database = useTestDatabase({ max: 4 });
const queue = createQueue({ tables, workflows: workflowsIn(workflowTables) });
const { handle } = handlersFor<typeof database.db, typeof queue>();

const MEMBERS = depth(100_000, 1_000_000);
const TIMEOUT_MS = depth(300_000, 1_500_000);
const WORKERS = 12;
const member = defineJob('member', {
  payload: unvalidated<number>(),
  backoff: fixedBackoff(0),
  maxAttempts: 2,
});
// In a queue of its own, where nothing stands before it.
const last = defineJob('last', { queue: 'reports', output: unvalidated<unknown>() });
/** One in a hundred fails for good, and another at its first attempt. */
const failed = MEMBERS / 100;
const retried = failed;

/** Made as they are inserted: no process holds them all. */
async function* entries(): AsyncGenerator<{ readonly payload: number }> {
  for (let payload = 0; payload < MEMBERS; payload++) yield { payload };
}

test(`${WORKERS} workers, a batch of ${MEMBERS.toLocaleString('en')} jobs: the last one begins once, after all of them`, {
  timeout: TIMEOUT_MS,
}, async () => {
  await addWorkflowTables(database);
  const liveAtLast: number[] = [];
  const problems: unknown[] = [];
  const handlers = [
    handle(member, ({ payload, job }) => {
      if (payload % 100 === 1) throw new NonRetryableError('never');
      if (payload % 100 === 2 && job.attempt === 1) throw new Error('once');
    }),
    handle(last, async ({ step }) => {
      const [row] = await database.client`select count(*)::int as live from queue_jobs where kind = 'member'`;
      liveAtLast.push(row?.live);
      return await step.parentCounts();
    }),
  ];
  const workers = (await database.connect(WORKERS)).map(({ db }) => {
    const worker = createWorker(db, {
      queue,
      handlers,
      queues: { default: { concurrency: 100 }, reports: { concurrency: 1 } },
      log: false,
    });
    worker.on('error', (event) => {
      // The machine has stalled: what was lost by that is found by what the tables hold.
      if (!(event.error instanceof NoAnswerError)) problems.push(event);
    });
    worker.on('lost', (lost) => problems.push(lost));
    onTestFinished(() => worker.stop());
    return worker;
  });
  await Promise.all(workers.map((worker) => worker.start()));
  const { id, lastId } = await queue.workflows.enqueueBatch(database.db, member, entries(), { last });
  await queue.waitFor(database.db, last, lastId, { timeoutMs: TIMEOUT_MS - 20_000 });
  await Promise.all(workers.map((worker) => worker.stop()));

  expect(problems).toEqual([]);
  expect(await database.db.$count(queueJobs)).toBe(0);
  expect(liveAtLast).toEqual([0]);
  expect(await queue.find(database.db, lastId)).toMatchObject({
    state: 'completed',
    output: { total: MEMBERS, completed: MEMBERS - failed, failed },
  });
  expect(await queue.workflows.flow(database.db, id)).toMatchObject({ total: MEMBERS, pending: 0, failed });
  const ends = await database.client`
    select kind, state, attempt, count(*)::int as jobs from queue_results group by 1, 2, 3 order by 1, 2, 3`;
  expect([...ends]).toEqual([
    { kind: 'last', state: 'completed', attempt: 1, jobs: 1 },
    { kind: 'member', state: 'completed', attempt: 1, jobs: MEMBERS - failed - retried },
    { kind: 'member', state: 'completed', attempt: 2, jobs: retried },
    { kind: 'member', state: 'discarded', attempt: 1, jobs: failed },
  ]);
  const [left] = await database.client`select count(*)::int as tallies from queue_tallies`;
  expect(left).toEqual({ tallies: 0 });
});
