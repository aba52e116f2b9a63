import {
  createQueue,
  createWorker,
  defineJob,
  defineSignal,
  fixedBackoff,
  handlersFor,
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

/** What jobs wait for in `step.first` is the code's, which a deploy may change while they wait. */

const database = useTestDatabase({ max: 15 });
const queue = createQueue({ tables, workflows: workflowsIn(workflowTables) });
const { handle } = handlersFor<typeof database.db, typeof queue>();
const work = defineJob('work', {
  queue: 'q',
  payload: unvalidated<number>(),
  output: unvalidated<unknown>(),
  backoff: fixedBackoff(0),
  maxAttempts: 1,
});
const approval = defineSignal('approval', unvalidated<string>());

beforeAll(() => addWorkflowTables(database));
beforeEach(async () => {
  await clearTables(database.client);
  await clearWorkflowTables(database);
});

type Run = Parameters<typeof handle<typeof work>>[1];

async function deploy(run: Run): Promise<Worker> {
  const worker = createWorker(database.db, { queue, handlers: [handle(work, run)], log: false });
  onTestFinished(() => worker.stop());
  await worker.start();
  return worker;
}

const stateOf = async (id: number) => (await queue.find(database.db, id))?.state;
const plain: Run = async ({ step }) => (await step.first('decision', { approved: approval })).key;
const timed: Run = async ({ step }) =>
  (await step.first('decision', { approved: approval, late: { delayMs: 300 } })).key;

test('a step.first whose time a deploy takes away waits on without one', async () => {
  const worker = await deploy(timed);
  const { id } = await queue.enqueue(database.db, work, 1);
  await until(async () => (await queue.workflows.steps(database.db, id)).length === 1);
  await worker.stop();
  await deploy(plain);
  // It is due, once or at once, and waits for the signal alone from then on.
  await until(async () => (await stateOf(id)) === 'waiting');
  await queue.workflows.signal(database.db, { id }, approval, 'Ada');
  await until(async () => (await stateOf(id)) === 'completed');
  expect(await queue.find(database.db, id)).toMatchObject({ output: 'approved' });
});

test('a step.first to which a deploy adds a time waits for that, from its first run on', async () => {
  const worker = await deploy(plain);
  const { id } = await queue.enqueue(database.db, work, 1);
  await until(async () => (await stateOf(id)) === 'waiting');
  await worker.stop();
  await deploy(timed);
  await database.client`update queue_jobs set run_at = now()`;
  await until(async () => (await stateOf(id)) === 'completed');
  expect(await queue.find(database.db, id)).toMatchObject({ output: 'late' });
});

test('of a delay and a date that a deploy adds to a step.first that has waited for long, the date that is over wins', async () => {
  const worker = await deploy(plain);
  const { id } = await queue.enqueue(database.db, work, 1);
  await until(async () => (await stateOf(id)) === 'waiting');
  await worker.stop();
  await database.client`update queue_steps set started_at = started_at - interval '2 days'`;
  const closes = { until: new Date(Date.now() + 300) };
  await deploy(
    async ({ step }) =>
      (await step.first('decision', { approved: approval, remind: { delayMs: 3_600_000 }, closes })).key,
  );
  await database.client`update queue_jobs set run_at = now()`;
  await until(async () => (await stateOf(id)) === 'completed');
  expect(await queue.find(database.db, id)).toMatchObject({ output: 'closes' });
});

test('a step.first refuses keys that cannot be stored before it waits', async () => {
  await deploy(async ({ step }) => (await step.first('decision', { 'a\0': approval })).key);
  const { id } = await queue.enqueue(database.db, work, 1);
  await until(async () => (await stateOf(id)) === 'discarded');
  expect(await queue.find(database.db, id)).toMatchObject({ errors: [{ name: 'TypeError' }] });
  expect(await queue.workflows.steps(database.db, id)).toEqual([]);
});
