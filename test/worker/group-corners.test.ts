import { createQueue, createWorker, defineJob, handle, limitsIn, unvalidated } from 'drizzle-queue';
import * as control from 'drizzle-queue/schema/control';
import { beforeAll, beforeEach, expect, onTestFinished, test } from 'vitest';
import { sqlStateOf } from '../../src/core/sql/executor.ts';
import { addControlTables } from '../support/control-tables.ts';
import { type Connection, useTestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';

const database = useTestDatabase();
const queue = createQueue({ limits: limitsIn(control, { work: { groups: { concurrency: 1 } } }) });
const step = defineJob('step', {
  payload: unvalidated<{ group: string; n: number }>(),
  queue: 'work',
  group: ({ group }) => group,
});
const SERIALIZATION_FAILURE = '40001';

beforeAll(() => addControlTables(database));
// Not after each: then a worker that `onTestFinished` stops still runs, and the truncate meets its locks.
beforeEach(() =>
  database.client.unsafe(`
    truncate queue_jobs, queue_results, queue_groups, queue_notes, queue_holds, queue_limits, queue_usage`),
);

const entries = (groups: number, each: number) =>
  Array.from({ length: groups * each }, (_, n) => ({ payload: { group: `g${n % groups}`, n } }));

/** Runs the jobs on workers of these connections; answers what ran, and the most of one group at once. */
async function workOff(connections: readonly Connection[], jobs: number) {
  const ran: number[] = [];
  const running = new Map<string, number>();
  let most = 0;
  const errors: unknown[] = [];
  const handler = handle(step, async ({ payload: { group, n } }) => {
    running.set(group, (running.get(group) ?? 0) + 1);
    most = Math.max(most, running.get(group) ?? 0);
    await new Promise(setImmediate);
    running.set(group, (running.get(group) ?? 0) - 1);
    ran.push(n);
  });
  const workers = connections.map(({ db }) =>
    createWorker(db, { queue, log: false, handlers: [handler] }).on('error', ({ error }) =>
      errors.push(error),
    ),
  );
  onTestFinished(async () => void (await Promise.all(workers.map((worker) => worker.stop()))));
  await Promise.all(workers.map((worker) => worker.start()));
  await until(() => ran.length >= jobs);
  await Promise.all(workers.map((worker) => worker.stop()));
  return { ran: ran.toSorted((a, b) => a - b), most, errors };
}

test('new groups are claimed by several workers whose statements run as repeatable read', async () => {
  await database.client.unsafe(
    `alter database "${database.name}" set default_transaction_isolation = 'repeatable read'`,
  );
  onTestFinished(async () => {
    await database.client.unsafe(`alter database "${database.name}" reset default_transaction_isolation`);
  });
  const connections = await database.connect(3);
  for (const { client } of connections) {
    const [row] = await client<{ level: string }[]>`select current_setting('transaction_isolation') as level`;
    expect(row?.level).toBe('repeatable read');
  }
  const jobs = entries(40, 5);
  await queue.enqueueMany(database.db, step, jobs);
  const { ran, most, errors } = await workOff(connections, jobs.length);
  expect(ran).toEqual(jobs.map(({ payload }) => payload.n));
  expect(most).toBe(1);
  // A claim that met a group which another has changed is refused as a whole, and tried again.
  for (const error of errors) expect(sqlStateOf(error)).toBe(SERIALIZATION_FAILURE);
});

test('notes that repeat each other do no harm, and go', async () => {
  const jobs = entries(40, 5);
  await queue.enqueueMany(database.db, step, jobs);
  for (let n = 0; n < 5; n++) {
    await database.client`
      insert into queue_notes (queue, due_at, group_keys)
      select distinct queue, statement_timestamp(), array[group_key] from queue_jobs where group_key is not null`;
  }
  const { ran, most, errors } = await workOff(await database.connect(2), jobs.length);
  expect([ran, most, errors]).toEqual([jobs.map(({ payload }) => payload.n), 1, []]);
  const notes = async () => await database.client`select from queue_notes`;
  const [connection] = await database.connect();
  const idle = createWorker(connection?.db ?? database.db, {
    queue,
    log: false,
    handlers: [handle(step, () => {})],
  });
  onTestFinished(() => idle.stop());
  await idle.start();
  await until(async () => (await notes()).length === 0);
});
