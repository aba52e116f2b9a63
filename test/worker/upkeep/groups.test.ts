import { createQueue, createWorker, defineJob, handle, limitsIn } from 'drizzle-queue';
import * as control from 'drizzle-queue/schema/control';
import { beforeAll, expect, onTestFinished, test } from 'vitest';
import { addControlTables } from '../../support/control-tables.ts';
import { useTestDatabase } from '../../support/test-database.ts';
import { until } from '../../support/until.ts';
import { nextEvent } from '../next-event.ts';

const database = useTestDatabase({ max: 6 });
const queue = createQueue({ limits: limitsIn(control, { exports: { groups: {} } }) });
const work = defineJob('work', { queue: 'exports' });

beforeAll(() => addControlTables(database));

test('groups without jobs are removed as fast as they come, and a worker begins before that', async () => {
  // Each had a job, which has ended: a queue with a group for each job makes so many in a second.
  await database.client`
    insert into queue_groups (queue, group_key, turn, ready_at, held)
    select 'exports', 'document-' || n, n, 'infinity', array[n] from generate_series(1, 20000) as n`;
  // One of them has a job again, scheduled: it stays.
  await queue.enqueue(database.db, work, undefined, { group: 'document-7', delayMs: 3_600_000 });
  const worker = createWorker(database.db, { queue, handlers: [handle(work, () => {})] });
  onTestFinished(() => worker.stop());
  const completed = nextEvent(worker, 'completed');
  const { id } = await queue.enqueue(database.db, work, undefined, { group: 'document-20001' });
  await worker.start();
  expect(await completed).toMatchObject([{ job: { id } }]);

  await until(async () => {
    const [row] = await database.client<{ groups: number }[]>`
      select count(*)::int4 as groups from queue_groups where queue = 'exports'`;
    return Number(row?.groups) <= 2;
  });
  expect(
    await database.client`select from queue_groups where queue = 'exports' and group_key = 'document-7'`,
  ).toHaveLength(1);
});
