import { sql } from 'drizzle-orm';
import {
  createQueue,
  createWorker,
  defineJob,
  defineSchedule,
  handle,
  QueueError,
  schedulesIn,
  type TransactionOf,
} from 'drizzle-queue';
import { queueSchedules } from 'drizzle-queue/schema/control';
import { beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { addControlTables } from '../support/control-tables.ts';
import { emptyTables } from '../support/empty-tables.ts';
import { type Connection, useTestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';
import { expectDenied } from './denied.ts';
import { pageBlocks, useRoles } from './use-roles.ts';

const database = useTestDatabase();
beforeAll(() => addControlTables(database));
const roles = useRoles(database, ['grant ', 'create policy']);
const queue = createQueue({ schedules: schedulesIn(queueSchedules) });
const tick = defineJob('tick');

beforeAll(async () => {
  for (const code of pageBlocks(['grant ', 'create policy'], 'control')) await roles.run(code);
  await roles.run('grant select, insert, update on queue_schedules to app_web');
});
beforeEach(async () => {
  await emptyTables(database.client, 'queue_jobs', 'queue_results', 'queue_workers', 'queue_schedules');
});

type Tx = TransactionOf<Connection['db']>;

function forTenant<T>(
  tenant: string,
  run: (tx: Tx) => Promise<T>,
  role: 'app_web' | 'app_admin' = 'app_admin',
): Promise<T> {
  return roles.as(role).db.transaction(async (tx) => {
    await tx.execute(sql`select set_config('app.tenant', ${tenant}, true)`);
    return await run(tx);
  });
}

const scheduleOf = (tenant: string, name = `of-${tenant}`) =>
  defineSchedule(name, { job: tick, every: 1_000, options: { metadata: { tenant } } });

const namesOf = (tenant: string) =>
  forTenant(tenant, async (tx) => (await queue.schedules.list(tx)).schedules.map(({ name }) => name));

describe('each tenant', () => {
  test('sets, sees and changes its own schedules, and no others', async () => {
    for (const tenant of ['a', 'b']) {
      await forTenant(tenant, (tx) => queue.schedules.set(tx, scheduleOf(tenant)), 'app_web');
    }
    expect(await namesOf('a')).toEqual(['of-a']);
    expect(await namesOf('b')).toEqual(['of-b']);
    expect(await namesOf('')).toEqual([]);
    expect(await forTenant('a', (tx) => queue.schedules.find(tx, 'of-b'))).toBeUndefined();
    for (const change of ['pause', 'resume', 'runNow'] as const) {
      await expect(
        forTenant<unknown>('a', (tx) => queue.schedules[change](tx, 'of-b')),
      ).rejects.toBeInstanceOf(QueueError);
    }
    expect(await forTenant('a', (tx) => queue.schedules.remove(tx, 'of-b'))).toBe(false);
    expect(await forTenant('b', (tx) => queue.schedules.pause(tx, 'of-b'))).toBe(true);
    expect(await forTenant('b', (tx) => queue.schedules.remove(tx, 'of-b'))).toBe(true);
  });

  test('cannot set one for another, nor take over its name', async () => {
    await forTenant('b', (tx) => queue.schedules.set(tx, scheduleOf('b', 'same')));
    await expectDenied(forTenant('a', (tx) => queue.schedules.set(tx, scheduleOf('b', 'other'))));
    await expectDenied(forTenant('a', (tx) => queue.schedules.set(tx, scheduleOf('a', 'same'))));
    const bare = defineSchedule('bare', { job: tick, every: 1_000 });
    await expectDenied(forTenant('a', (tx) => queue.schedules.set(tx, bare)));
    const rows =
      await database.client`select name, settings -> 'metadata' ->> 'tenant' as tenant from queue_schedules`;
    expect([...rows]).toEqual([{ name: 'same', tenant: 'b' }]);
  });

  test('sees the jobs of its own ticks, which a worker fires for all', async () => {
    for (const tenant of ['a', 'b'])
      await forTenant(tenant, (tx) => queue.schedules.set(tx, scheduleOf(tenant)));
    const worker = createWorker(roles.as('app_worker').db, {
      queue,
      handlers: [handle(tick, () => undefined)],
    });
    onTestFinished(() => worker.stop());
    const errors: unknown[] = [];
    worker.on('error', (event) => errors.push(event));
    await worker.start();
    const completed = async () =>
      await Promise.all(
        ['a', 'b'].map((tenant) =>
          forTenant(tenant, async (tx) =>
            (await queue.list(tx, { state: 'completed' })).jobs.map(({ metadata }) => metadata.schedule),
          ),
        ),
      );
    await until(async () => (await completed()).every((schedules) => schedules.length > 0));
    expect((await completed()).map((schedules) => [...new Set(schedules)])).toEqual([['of-a'], ['of-b']]);
    await worker.stop();
    expect(errors).toEqual([]);
  });
});

test('a role that only looks sets, changes and removes nothing; one without delete removes nothing', async () => {
  await roles.run('create policy reader on queue_schedules to app_reader using (true)');
  await forTenant('a', (tx) => queue.schedules.set(tx, scheduleOf('a')));
  const { db } = roles.as('app_reader');
  expect((await queue.schedules.list(db)).schedules).toHaveLength(1);
  await expectDenied(queue.schedules.set(db, scheduleOf('a')));
  await expectDenied(queue.schedules.pause(db, 'of-a'));
  await expectDenied(queue.schedules.remove(db, 'of-a'));
  await expectDenied(forTenant('a', (tx) => queue.schedules.remove(tx, 'of-a'), 'app_web'));
  expect(await namesOf('a')).toEqual(['of-a']);
});
