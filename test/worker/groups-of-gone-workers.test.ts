import { createQueue, createWorker, defineJob, handle, limitsIn, unvalidated } from 'drizzle-queue';
import * as control from 'drizzle-queue/schema/control';
import { beforeAll, onTestFinished, test } from 'vitest';
import { addWorkers, claimGroups } from '../queries/support/groups.ts';
import { addControlTables } from '../support/control-tables.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';
import { nextEvent } from './next-event.ts';

const database = useTestDatabase({ max: 10 });
beforeAll(() => addControlTables(database));

test('a job of a group begins soon after its worker was declared gone by one of other queues', async () => {
  const { db, client } = database;
  const queue = createQueue({ limits: limitsIn(control, { q: { groups: { concurrency: 1 } } }) });
  const k = defineJob('k', { payload: unvalidated<string>(), queue: 'q', group: (group) => group });
  const begun: number[] = [];
  // It declares none gone as long as this test takes.
  const survivor = createWorker(db, {
    queue,
    handlers: [handle(k, ({ job }) => void begun.push(job.id))],
    reconnectMs: 60_000,
  });
  const stranger = createWorker(db, {
    queue: createQueue(),
    handlers: [handle(defineJob('other', { queue: 'other' }), () => undefined)],
    reconnectMs: 1_000,
  });
  onTestFinished(async () => void (await Promise.all([survivor.stop(), stranger.stop()])));
  await Promise.all([survivor.start(), stranger.start()]);
  await queue.enqueue(db, k, 'first');
  await until(() => begun.length === 1);

  const paused = nextEvent(survivor, 'paused');
  await queue.pause(db, 'q');
  await paused;
  const [dead = 0] = await addWorkers(client);
  const { id } = await queue.enqueue(db, k, 'taken over');
  // A claim that the other one sent before the pause may still have the group's note.
  await until(async () => (await claimGroups(db, dead)).jobs.some((job) => job.id === id));
  const resumed = nextEvent(survivor, 'resumed');
  await queue.resume(db, 'q');
  await resumed;
  const gone = nextEvent(stranger, 'gone');
  // The lock of its session is free.
  await client`update queue_workers set session = 1 where id = ${dead}`;
  await gone;
  await until(() => begun.includes(id), { timeoutMs: 10_000 });
}, 240_000);
