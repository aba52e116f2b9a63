import { setTimeout as sleep } from 'node:timers/promises';
import {
  createQueue,
  createWorker,
  defineJob,
  handle,
  limitsIn,
  unvalidated,
  type Worker,
} from 'drizzle-queue';
import * as control from 'drizzle-queue/schema/control';
import { beforeAll, beforeEach, expect, onTestFinished, test } from 'vitest';
import { addControlTables } from '../support/control-tables.ts';
import { emptyTables } from '../support/empty-tables.ts';
import { gate } from '../support/gate.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';

const database = useTestDatabase({ max: 12 });
const queue = createQueue({
  limits: limitsIn(control, {
    few: { concurrency: 2 },
    kinds: { kinds: { kinds: { concurrency: 2 } } },
    rated: { concurrency: 2, rate: { limit: 20, perMs: 3_600_000 } },
    ratedKinds: { kinds: { ratedKinds: { concurrency: 2, rate: { limit: 20, perMs: 3_600_000 } } } },
  }),
});
const long = defineJob('long', { payload: unvalidated<null>(), queue: 'long' });

beforeAll(() => addControlTables(database));
beforeEach(async () => {
  await emptyTables(database.client, 'queue_jobs', 'queue_usage');
});

/** Starts three workers of a queue with two slots, of which each also serves another queue. */
async function work(name: string) {
  const job = defineJob(name, { payload: unvalidated<null>(), queue: name });
  const state: { ended: number; long: Worker | undefined } = { ended: 0, long: undefined };
  const { opened, open } = gate();
  const workers = Array.from({ length: 3 }, () => {
    const handlers = [
      handle(job, async () => {
        await sleep(5);
        state.ended++;
      }),
      handle(long, async () => {
        state.long = worker;
        await opened;
      }),
    ];
    const worker: Worker = createWorker(database.db, { queue, handlers });
    return worker;
  });
  onTestFinished(async () => {
    open();
    await Promise.all(workers.map((worker) => worker.stop()));
  });
  const jobs = Array.from({ length: 10_000 }, () => ({ payload: null }));
  await queue.enqueueMany(database.db, job, jobs);
  await Promise.all(workers.map((worker) => worker.start()));
  return { state, workers };
}

/** The workers that have slots, or want some. */
async function sharing(name: string): Promise<string[]> {
  const rows = await database.client<{ worker: string }[]>`
    select e.worker from queue_usage as u cross join jsonb_each(u.leases) as e(worker, lease)
    where u.queue = ${name} and ((e.lease ->> 0)::int > 0 or (e.lease ->> 1)::int > 0)`;
  return rows.map(({ worker }) => worker);
}

test.for(['few', 'kinds'])('while %s is paused, no slot goes from worker to worker', async (name) => {
  const { state } = await work(name);
  await until(() => state.ended > 50);
  await queue.pause(database.db, name);
  await until(async () => (await sharing(name)).length === 0);
  const { ended } = state;
  await queue.resume(database.db, name);
  await until(() => state.ended > ended);
});

test.for(['rated', 'ratedKinds'])('nor while the rate of %s is used up', async (name) => {
  const { state } = await work(name);
  await until(() => state.ended === 20);
  await until(async () => (await sharing(name)).length === 0);
  const { ended } = state;
  const kind = name === 'rated' ? {} : { kind: name };
  await queue.limits.set(database.db, { queue: name, ...kind }, { rate: { limit: 40, perMs: 3_600_000 } });
  await until(() => state.ended === 40);
  expect(ended).toBe(20);
});

test('a worker that stops asks for no slots while its last handlers run', async () => {
  const { state, workers } = await work('few');
  await until(async () => (await sharing('few')).length === workers.length);
  await queue.enqueue(database.db, long, null);
  await until(() => state.long !== undefined);
  void state.long?.stop();
  await until(async () => (await sharing('few')).length === workers.length - 1);
});
