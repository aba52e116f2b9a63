import {
  createQueue,
  createWorker,
  defineJob,
  drain,
  handle,
  limitsIn,
  QueueError,
  unvalidated,
  workflowsIn,
} from 'drizzle-queue';
import * as control from 'drizzle-queue/schema/control';
import * as workflows from 'drizzle-queue/schema/workflows';
import { beforeAll, expect, test } from 'vitest';
import { AS_ON_CITUS } from '../support/citus.ts';
import { addControlTables, addWorkflowTables } from '../support/control-tables.ts';
import { useTestDatabase } from '../support/test-database.ts';

const database = useTestDatabase();
const job = defineJob('work', { queue: 'grouped', payload: unvalidated<null>() });
const handlers = [handle(job, async () => undefined)];

beforeAll(async () => {
  await addControlTables(database);
  await addWorkflowTables(database);
  await database.client.begin((tx) => tx.unsafe(AS_ON_CITUS));
});

test('a worker of a queue with groups does not start on Citus, and says why', async () => {
  const queue = createQueue({ limits: limitsIn(control, { grouped: { groups: { concurrency: 1 } } }) });
  await queue.enqueue(database.db, job, null);
  const worker = createWorker(database.db, { queue, handlers });
  const refused = worker.start();
  await expect(refused).rejects.toThrow(QueueError);
  await expect(refused).rejects.toThrow(
    "The limits of the queue 'grouped' put its jobs into groups, and Citus refuses the statements that claim from groups",
  );
  await worker.stop();
  expect(await database.client`select from queue_workers`).toHaveLength(0);
  await expect(drain(database.db, { queue, handlers, deadlineMs: 60_000 })).rejects.toThrow(
    'put its jobs into groups',
  );
  expect(await database.client`select from queue_jobs`).toHaveLength(1);
});

test('nor does one of a queue with workflows', async () => {
  const queue = createQueue({ workflows: workflowsIn(workflows) });
  const worker = createWorker(database.db, { queue, handlers: [handle(job, () => {})] });
  const refused = worker.start();
  await expect(refused).rejects.toThrow(QueueError);
  await expect(refused).rejects.toThrow(
    'The queue has workflows, and Citus refuses the statements that receive their signals and end their batches. ' +
      'Give createQueue no workflows',
  );
  await worker.stop();
  expect(await database.client`select from queue_workers`).toHaveLength(0);
});

test('one with other limits works there', async () => {
  const queue = createQueue({ limits: limitsIn(control, { other: { concurrency: 1 } }) });
  const other = defineJob('other', { queue: 'other', payload: unvalidated<null>() });
  await queue.enqueue(database.db, other, null);
  const handled = [handle(other, async () => undefined)];
  expect(await drain(database.db, { queue, handlers: handled, deadlineMs: 60_000 })).toMatchObject({
    completed: 1,
  });
});
