import { createQueue, createWorker, defineJob, handle, limitsIn, schedulesIn } from 'drizzle-queue';
import { createDashboard } from 'drizzle-queue/dashboard';
import * as control from 'drizzle-queue/schema/control';
import { queueMetrics } from 'drizzle-queue/schema/metrics';
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { page, post } from '../dashboard/support/visits.ts';
import { addControlTables, addMetricsTable } from '../support/control-tables.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { expectDenied } from './denied.ts';
import { pageBlocks, type RoleName, useRoles } from './use-roles.ts';

const database = useTestDatabase();
const roles = useRoles(database, ['grant ']);
const queue = createQueue({ metrics: queueMetrics });
const work = defineJob('work');

beforeAll(async () => {
  await addControlTables(database);
  await addMetricsTable(database);
  for (const about of ['metrics', 'control'] as const) {
    for (const code of pageBlocks(['grant '], about)) await roles.run(code);
  }
});

/** A worker of the role. */
function workerAs(role: RoleName) {
  const worker = createWorker(roles.as(role).db, { queue, log: false, handlers: [handle(work, () => {})] });
  onTestFinished(() => worker.stop());
  return worker;
}

/** Does it without one of the rights that the page grants. */
async function without(privilege: string, role: RoleName, act: () => Promise<void>): Promise<void> {
  await roles.run(`revoke ${privilege} on queue_metrics from ${role}`);
  try {
    await act();
  } finally {
    await roles.run(`grant ${privilege} on queue_metrics to ${role}`);
  }
}

test('a worker writes what it has counted with what the page grants', async () => {
  await queue.enqueue(roles.as('app_web').db, work);
  const worker = workerAs('app_worker');
  const problems: unknown[] = [];
  worker.on('error', ({ error }) => problems.push(error));
  const completed = new Promise((resolve) => worker.on('completed', resolve));
  await worker.start();
  await completed;
  await worker.stop();
  expect(problems).toEqual([]);
  const rows = await database.client`select kind, completed::int from queue_metrics`;
  expect([...rows]).toEqual([{ kind: 'work', completed: 1 }]);
});

test.each(['select', 'insert', 'update', 'delete'])(
  'a worker without the right to %s says so when it starts',
  async (privilege) => {
    await without(privilege, 'app_worker', async () => {
      await expect(workerAs('app_worker').start()).rejects.toThrow(`grant ${privilege} on`);
    });
  },
);

describe('a role that reads', () => {
  const pages = ['', '/jobs', '/errors', '/queues', '/schedules', '/limits', '/workers', '/database'];
  const everything = createQueue({
    metrics: queueMetrics,
    limits: limitsIn(control, { default: { concurrency: 2 } }),
    schedules: schedulesIn(control.queueSchedules),
  });

  test('sees rates, vitals and every page of the dashboard', async () => {
    const { db } = roles.as('app_reader');
    expect((await queue.stats(db)).rates).toBeDefined();
    await queue.vitals(db);
    const { id } = await queue.enqueue(database.db, work);
    const dashboard = createDashboard({ db, queue: everything, basePath: '/ops', authorize: () => 'read' });
    for (const path of [...pages, `/jobs/${id}`])
      expect(await page(dashboard, `/ops${path}`)).toContain('<h1');
  });

  test('changes nothing, whatever the dashboard lets it try', async () => {
    const { db } = roles.as('app_reader');
    const dashboard = createDashboard({
      db,
      queue: everything,
      basePath: '/ops',
      authorize: () => 'write',
      onAction: () => {},
    });
    await post(dashboard, '/ops/actions/pause', { queue: 'default', back: '/queues' }).catch(() => undefined);
    expect(await queue.paused(database.db)).toEqual([]);
    await expectDenied(queue.pause(db, 'default'));
    await expectDenied(db.delete(queueMetrics));
    await expectDenied(queue.enqueue(db, work));
  });
});

test('a role that enqueues sees no metrics', async () => {
  await expectDenied(roles.as('app_web').db.select().from(queueMetrics));
  await expectDenied(queue.list(roles.as('app_web').db));
});
