import { sql } from 'drizzle-orm';
import {
  createQueue,
  createWorker,
  defineJob,
  handle,
  limitsIn,
  NonRetryableError,
  type TransactionOf,
  unvalidated,
} from 'drizzle-queue';
import * as control from 'drizzle-queue/schema/control';
import { beforeAll, beforeEach, expect, onTestFinished, test } from 'vitest';
import { clearTables } from '../queries/support/jobs.ts';
import { addControlTables } from '../support/control-tables.ts';
import { emptyTables } from '../support/empty-tables.ts';
import { type Connection, useTestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';
import { expectDenied } from './denied.ts';
import { pageBlocks, useRoles } from './use-roles.ts';

const database = useTestDatabase();
beforeAll(() => addControlTables(database));
const roles = useRoles(database, ['grant ', 'create policy']);
const queue = createQueue({
  limits: limitsIn(control, { work: { groups: { serial: 'success' } } }),
  keys: control.queueKeys,
});
const step = defineJob('step', {
  payload: unvalidated<{ tenant: string; n: number }>(),
  queue: 'work',
  group: ({ tenant }) => tenant,
});

beforeAll(async () => {
  for (const code of pageBlocks(['grant ', 'create policy'], 'control')) await roles.run(code);
  await roles.run('grant select on queue_groups to app_admin');
});
beforeEach(async () => {
  await clearTables(database.client);
  await emptyTables(
    database.client,
    'queue_limits',
    'queue_groups',
    'queue_holds',
    'queue_notes',
    'queue_keys',
  );
});

type Tx = TransactionOf<Connection['db']>;

function forTenant<T>(
  tenant: string,
  role: 'app_web' | 'app_admin',
  run: (tx: Tx) => Promise<T>,
): Promise<T> {
  return roles.as(role).db.transaction(async (tx) => {
    await tx.execute(sql`select set_config('app.tenant', ${tenant}, true)`);
    return await run(tx);
  });
}

const of = (tenant: string, n: number) => ({ payload: { tenant, n }, metadata: { tenant } });

test('each tenant enqueues into its group, sees it alone, and sets nobody going but itself', async () => {
  for (const tenant of ['a', 'b']) {
    await forTenant(tenant, 'app_web', (tx) => queue.enqueueMany(tx, step, [of(tenant, 0), of(tenant, 1)]));
  }
  await queue.limits.set(database.db, { queue: 'work', group: 'b' }, { weight: 3 });
  const ran: string[] = [];
  const worker = createWorker(roles.as('app_worker').db, {
    queue,
    handlers: [
      handle(step, ({ payload: { tenant, n } }) => {
        ran.push(`${tenant}${n}`);
        if (n === 0 && ran.filter((one) => one === `${tenant}0`).length === 1)
          throw new NonRetryableError('once');
      }),
    ],
  });
  onTestFinished(() => worker.stop());
  const errors: unknown[] = [];
  worker.on('error', (event) => errors.push(event));
  await worker.start();
  const stopped = async () =>
    (await queue.limits.groups(database.db, { queue: 'work' })).groups.map(({ state }) => state).join();
  await until(async () => (await stopped()) === 'blocked,blocked');

  const groups = (tenant: string) =>
    forTenant(tenant, 'app_admin', async (tx) =>
      (await queue.limits.groups(tx, { queue: 'work' })).groups.map(({ group, state }) => [group, state]),
    );
  expect(await groups('a')).toEqual([['a', 'blocked']]);
  expect(await groups('')).toEqual([]);
  const limits = (tenant: string) =>
    forTenant(tenant, 'app_admin', async (tx) =>
      (await queue.limits.list(tx, { queue: 'work' })).limits.flatMap(({ group }) => group ?? []),
    );
  expect(await limits('a')).not.toContain('b');
  expect(await limits('b')).toContain('b');
  await expectDenied(
    forTenant('b', 'app_admin', (tx) => queue.limits.set(tx, { queue: 'work', group: 'b' }, { weight: 9 })),
  );
  await forTenant('a', 'app_admin', (tx) => queue.limits.unblock(tx, { queue: 'work', group: 'b' }));
  expect(await stopped()).toBe('blocked,blocked');

  await forTenant('a', 'app_admin', (tx) => queue.redrive(tx, { queue: 'work' }));
  await until(() => ran.includes('a1'));
  expect(ran.filter((one) => one.startsWith('a'))).toEqual(['a0', 'a0', 'a1']);
  expect(ran).not.toContain('b1');
  await forTenant('b', 'app_admin', (tx) => queue.limits.unblock(tx, { queue: 'work', group: 'b' }));
  await until(() => ran.includes('b1'));
  await worker.stop();
  expect(errors).toEqual([]);
});

test('a tenant replaces and debounces its own jobs; a key of another tells nothing and changes nothing', async () => {
  const enqueue = (tenant: string, n: number, key: string) =>
    forTenant(tenant, 'app_web', (tx) =>
      queue.enqueue(tx, step, { tenant, n }, { metadata: { tenant }, replace: { key } }),
    );
  const first = await enqueue('a', 1, 'a/doc');
  expect(await enqueue('a', 2, 'a/doc')).toEqual({ ...first, outcome: 'replaced' });
  await expect(enqueue('b', 3, 'a/doc')).rejects.toThrow();
  const [row, ...more] = await database.client`select payload from queue_jobs`;
  expect([row?.payload, more]).toEqual([{ tenant: 'a', n: 2 }, []]);
  const forMs = { uniqueKey: 'b/doc', unique: { forMs: 60_000 } } as const;
  const unique = () =>
    forTenant('b', 'app_web', (tx) =>
      queue.enqueue(tx, step, { tenant: 'b', n: 4 }, { metadata: { tenant: 'b' }, ...forMs }),
    );
  expect([(await unique()).outcome, (await unique()).outcome]).toEqual(['enqueued', 'duplicate']);
});
