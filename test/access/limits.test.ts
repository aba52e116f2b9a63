import { createQueue, createWorker, defineJob, handle, limitsIn } from 'drizzle-queue';
import * as control from 'drizzle-queue/schema/control';
import { beforeAll, expect, onTestFinished, test } from 'vitest';
import { addControlTables } from '../support/control-tables.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { nextEvent } from '../worker/next-event.ts';
import { useRoles } from './use-roles.ts';

const database = useTestDatabase();
const roles = useRoles(database, ['grant ']);
const queue = createQueue({ limits: limitsIn(control, { few: { concurrency: 1 } }) });
const job = defineJob('job', { queue: 'few' });
const handlers = [handle(job, () => undefined)];

beforeAll(() => addControlTables(database));

test('a worker of queues with limits says which rights it lacks for that, and works with them alone', async () => {
  const { db } = roles.as('app_worker');
  const refused = await createWorker(db, { queue, handlers })
    .start()
    .catch((error: unknown) => String(error));
  const grants = String(refused).match(/grant [^;]+;/g) ?? [];
  expect(grants.map((grant) => grant.replace(/ to .*/, ''))).toEqual(
    expect.arrayContaining([
      'grant select on "queue_limits"',
      'grant select on "queue_usage"',
      'grant insert on "queue_usage"',
      'grant update on "queue_usage"',
    ]),
  );
  for (const grant of grants) await database.client.unsafe(grant);
  const worker = createWorker(db, { queue, handlers });
  onTestFinished(() => worker.stop());
  const errors: unknown[] = [];
  worker.on('error', (error) => errors.push(error));
  const completed = nextEvent(worker, 'completed');
  await worker.start();
  await queue.enqueue(database.db, job);
  await completed;
  expect(errors).toEqual([]);
});
