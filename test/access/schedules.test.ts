import { createQueue, createWorker, defineJob, defineSchedule, handle, schedulesIn } from 'drizzle-queue';
import { queueSchedules } from 'drizzle-queue/schema/control';
import { beforeAll, expect, onTestFinished, test } from 'vitest';
import { addControlTables } from '../support/control-tables.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { nextEvent } from '../worker/next-event.ts';
import { useRoles } from './use-roles.ts';

const database = useTestDatabase();
const roles = useRoles(database, ['grant ']);
const queue = createQueue({ schedules: schedulesIn(queueSchedules) });
const tick = defineJob('tick');
const handlers = [handle(tick, () => undefined)];
const schedules = [defineSchedule('a', { job: tick, every: 1_000 })];

beforeAll(() => addControlTables(database));

test('a worker that fires schedules says which rights it lacks for that, and works with them alone', async () => {
  const { db } = roles.as('app_worker');
  const plain = createWorker(db, { queue: createQueue(), handlers });
  await plain.start();
  await plain.stop();

  const refused = await createWorker(db, { queue, handlers, schedules })
    .start()
    .catch((error: unknown) => String(error));
  const grants = String(refused).match(/grant [^;]+;/g) ?? [];
  expect(grants.map((grant) => grant.replace(/ to .*/, '')).sort()).toEqual([
    'grant delete on "queue_schedules"',
    'grant insert on "queue_jobs"',
    'grant insert on "queue_schedules"',
    'grant select on "queue_schedules"',
    'grant update on "queue_schedules"',
  ]);

  for (const grant of grants) await database.client.unsafe(grant);
  const worker = createWorker(db, { queue, handlers, schedules });
  onTestFinished(() => worker.stop());
  const completed = nextEvent(worker, 'completed');
  await worker.start();
  expect((await completed)[0].job.metadata.schedule).toBe('a');
});
