import {
  createQueue,
  createWorker,
  defineJob,
  fixedBackoff,
  handle,
  runNext,
  type StandardSchema,
  type Worker,
} from 'drizzle-queue';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { emptyTables } from '../../support/empty-tables.ts';
import { useTestDatabase } from '../../support/test-database.ts';
import { until } from '../../support/until.ts';
import { nextEvent } from '../next-event.ts';

const database = useTestDatabase({ max: 6 });
const queue = createQueue();

let worker: Worker | undefined;
beforeEach(async () => {
  await emptyTables(database.client, 'queue_jobs', 'queue_results');
});
afterEach(async () => {
  await worker?.stop();
});

type Validate = StandardSchema['~standard']['validate'];

/** A schema that answers what `validate` does. */
const schemaOf = (validate: Validate): StandardSchema => ({
  '~standard': { version: 1, vendor: 'test', validate },
});

/** A schema that hangs, but for the enqueue, which goes by another definition of the same kind. */
const hanging = schemaOf(() => new Promise(() => {}));
const once = { backoff: fixedBackoff(3_600_000), maxAttempts: 3 };
const enqueued = defineJob('checked', { ...once, payload: schemaOf((value) => ({ value })) });

describe.each([
  ['a payload schema', { payload: hanging }],
  ['an output schema', { payload: enqueued.payload, output: hanging }],
])('%s that never answers', (_what, schemas) => {
  test('is a timeout of the attempt', async () => {
    const { id } = await queue.enqueue(database.db, enqueued, 1);
    const job = defineJob('checked', { ...once, ...schemas, timeoutMs: 50 });
    worker = createWorker(database.db, { queue, handlers: [handle(job, () => 'done')] });
    const failed = nextEvent(worker, 'failed');
    await worker.start();
    expect((await failed)[0].error).toMatchObject({ name: 'JobTimeoutError' });
    expect(await queue.find(database.db, id)).toMatchObject({
      state: 'scheduled',
      attempt: 1,
      errors: [{ name: 'JobTimeoutError' }],
    });
  });

  test('holds up no stop: the job is given back', async () => {
    const { id } = await queue.enqueue(database.db, enqueued, 1);
    const job = defineJob('checked', { ...once, ...schemas });
    worker = createWorker(database.db, {
      queue,
      handlers: [handle(job, () => 'done')],
      shutdownTimeoutMs: 0,
    });
    const began = nextEvent(worker, 'began');
    const interrupted = nextEvent(worker, 'interrupted');
    await worker.start();
    await began;
    await worker.stop();
    expect((await interrupted)[0]).toMatchObject({ job: { id }, began: true });
    expect(await queue.find(database.db, id)).toMatchObject({ state: 'due', attempt: 0, errors: [] });
  });

  test('is a timeout in runNext', async () => {
    await queue.enqueue(database.db, enqueued, 1);
    const job = defineJob('checked', { ...once, ...schemas, timeoutMs: 50 });
    const ran = await runNext(database.db, { queue, handlers: [handle(job, () => 'done')] });
    expect(ran).toMatchObject({ outcome: 'failed', error: { name: 'JobTimeoutError' } });
  });
});

test('complete(tx) waits for its output schema no longer than the attempt lasts, and its transaction rolls back', async () => {
  await queue.enqueue(database.db, enqueued, 1);
  // Long enough for the transaction to be open before it is over, on a busy machine too.
  const job = defineJob('checked', { ...once, payload: enqueued.payload, output: hanging, timeoutMs: 1_500 });
  let thrown: unknown;
  worker = createWorker(database.db, {
    queue,
    handlers: [
      handle(job, async ({ complete }) => {
        thrown = await database.db
          .transaction((tx) => complete(tx, 1))
          .then(
            () => 'committed',
            (error: unknown) => error,
          );
      }),
    ],
  });
  const failed = nextEvent(worker, 'failed');
  await worker.start();
  await failed;
  await until(() => thrown !== undefined);
  expect(thrown).toMatchObject({ name: 'JobTimeoutError' });
  const open = await database.client`
    select 1 from pg_stat_activity where datname = current_database() and state = 'idle in transaction'`;
  expect(open).toHaveLength(0);
});

test.each<[string, Validate]>([
  [
    'throws',
    () => {
      throw new Error('in the schema');
    },
  ],
  ['rejects', () => Promise.reject(new Error('in the schema'))],
  ['rejects late', () => new Promise((_, reject) => setImmediate(() => reject(new Error('in the schema'))))],
])('a schema that %s is a failed attempt', async (_what, validate) => {
  await queue.enqueue(database.db, enqueued, 1);
  const job = defineJob('checked', { ...once, payload: schemaOf(validate) });
  worker = createWorker(database.db, { queue, handlers: [handle(job, () => 'done')] });
  const failed = nextEvent(worker, 'failed');
  await worker.start();
  expect((await failed)[0].error).toMatchObject({ message: 'in the schema' });
});
