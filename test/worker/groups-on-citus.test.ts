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
import { AS_ON_CITUS, citusCluster, citusMigration } from '../support/citus.ts';
import { addControlTables, addWorkflowTables } from '../support/control-tables.ts';
import { useTestDatabase } from '../support/test-database.ts';

const database = useTestDatabase();
const job = defineJob('work', { queue: 'grouped', payload: unvalidated<null>() });
const handlers = [handle(job, async () => undefined)];

function withGroups() {
  return createQueue({ limits: limitsIn(control, { grouped: { groups: { concurrency: 1 } } }) });
}

beforeAll(async () => {
  await addControlTables(database);
  await addWorkflowTables(database);
  await database.client.begin((tx) => tx.unsafe(AS_ON_CITUS));
});

test('a worker of a queue with groups does not start on Citus, and says why', async () => {
  // One that was enqueued before its queue had groups.
  await createQueue().enqueue(database.db, job, null);
  const queue = withGroups();
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

test('no job is enqueued there into a group or a batch, and the error says why', async () => {
  const flows = createQueue({ workflows: workflowsIn(workflows) });
  const before = await database.client`select from queue_jobs`;
  // On a cluster it came with the migration that has distributed the table.
  if (citusCluster() === undefined) await database.client.unsafe(constraintOfMigration());
  const enqueues = [
    () => withGroups().enqueue(database.db, job, null, { group: 'a' }),
    () =>
      withGroups().enqueueMany(
        database.db,
        job,
        ['a', 'b'].map((group) => ({ payload: null, group })),
      ),
    () =>
      database.db.transaction((tx) =>
        flows.workflows.enqueueBatch(tx, job, [{ payload: null }], { last: job, payload: null }),
      ),
  ];
  for (const enqueue of enqueues) {
    const refused = await enqueue().then(
      () => undefined,
      (error: unknown) => error,
    );
    expect(refused).toBeInstanceOf(QueueError);
    expect(refused).toMatchObject({
      message: expect.stringContaining('a job in a group or a batch would wait forever there'),
      cause: { message: expect.stringContaining('no_groups_or_batches_on_citus') },
    });
  }
  await createQueue().enqueue(database.db, job, null);
  expect(await database.client`select from queue_jobs`).toHaveLength(before.length + 1);
});

/** What the migration of the docs adds to the table. */
function constraintOfMigration(): string {
  const [statement = ''] = citusMigration('on Citus').split('--> statement-breakpoint');
  expect(statement).toContain('add constraint');
  return statement;
}

test('one with other limits works there', async () => {
  const queue = createQueue({ limits: limitsIn(control, { other: { concurrency: 1 } }) });
  const other = defineJob('other', { queue: 'other', payload: unvalidated<null>() });
  await queue.enqueue(database.db, other, null);
  const handled = [handle(other, async () => undefined)];
  expect(await drain(database.db, { queue, handlers: handled, deadlineMs: 60_000 })).toMatchObject({
    completed: 1,
  });
});
