import { sql } from 'drizzle-orm';
import {
  createQueue,
  createWorker,
  defineJob,
  handle,
  NonRetryableError,
  QueueError,
  type TransactionOf,
  unvalidated,
} from 'drizzle-queue';
import { queueKeys } from 'drizzle-queue/schema/control';
import { beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { sqlStateOf } from '../../src/core/sql/executor.ts';
import { clearTables } from '../queries/support/jobs.ts';
import { addControlTables } from '../support/control-tables.ts';
import { emptyTables } from '../support/empty-tables.ts';
import { type Connection, useTestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';
import { expectDenied } from './denied.ts';
import { pageBlocks, type RoleName, useRoles } from './use-roles.ts';

const database = useTestDatabase();
beforeAll(() => addControlTables(database));
const roles = useRoles(database, ['grant ', 'create policy']);
const queue = createQueue();
const work = defineJob('work', { payload: unvalidated<string>() });

type Tx = TransactionOf<Connection['db']>;
type Metadata = Readonly<Record<string, string>>;

beforeEach(() => clearTables(database.client));

/** A transaction of a tenant, as the page shows it. */
function forTenant<T>(tenant: string, run: (tx: Tx) => Promise<T>, role: RoleName = 'app_admin'): Promise<T> {
  return roles.as(role).db.transaction(async (tx) => {
    await tx.execute(sql`select set_config('app.tenant', ${tenant}, true)`);
    return await run(tx);
  });
}

const enqueueFor = (tenant: string, payload: string, role?: RoleName) =>
  forTenant(tenant, (tx) => queue.enqueue(tx, work, payload, { metadata: { tenant } }), role);

const payloadsOf = (tenant: string) =>
  forTenant(tenant, async (tx) => (await queue.list(tx)).jobs.map(({ payload }) => payload).sort());

describe('each tenant', () => {
  test('sees its own jobs and results, and no others', async () => {
    await enqueueFor('a', 'a1');
    const { id } = await enqueueFor('b', 'b1');
    await enqueueFor('b', 'b2');
    expect(await payloadsOf('a')).toEqual(['a1']);
    expect(await payloadsOf('b')).toEqual(['b1', 'b2']);
    expect(await forTenant('a', (tx) => queue.find(tx, id))).toBeUndefined();
    expect(await forTenant('b', (tx) => queue.find(tx, id))).toMatchObject({ payload: 'b1' });
    expect(await forTenant('b', (tx) => queue.cancel(tx, id))).toEqual({ cancelled: true });
    expect(await forTenant('a', (tx) => queue.find(tx, id))).toBeUndefined();
    expect(await forTenant('b', (tx) => queue.find(tx, id))).toMatchObject({ state: 'cancelled' });
  });

  test('sees nothing without a tenant', async () => {
    await enqueueFor('a', 'a1');
    expect((await queue.list(roles.as('app_admin').db)).jobs).toEqual([]);
    // The next transaction on the same connection: the setting was local to the one before.
    expect(await payloadsOf('')).toEqual([]);
  });

  test('cannot cancel or redrive the job of another', async () => {
    const { id } = await enqueueFor('b', 'b1');
    expect(await forTenant('a', (tx) => queue.cancel(tx, id))).toEqual({
      cancelled: false,
      reason: 'not-found',
    });
    await runAll();
    expect(await forTenant('a', (tx) => queue.redrive(tx, { all: true }))).toEqual({
      redriven: 0,
      duplicates: 0,
    });
    expect(await forTenant('a', (tx) => queue.redrive(tx, id))).toEqual({ redriven: 0, duplicates: 0 });
    expect(await forTenant('b', (tx) => queue.redrive(tx, { all: true }))).toEqual({
      redriven: 1,
      duplicates: 0,
    });
  });

  test.each<RoleName>(['app_web', 'app_admin'])(
    '%s cannot enqueue for another, or for nobody',
    async (role) => {
      for (const metadata of [{ tenant: 'b' }, {}, undefined]) {
        await expectDenied(forTenant('a', (tx) => queue.enqueue(tx, work, 'x', { metadata }), role));
        await expectDenied(
          forTenant('a', (tx) => queue.enqueueMany(tx, work, [{ payload: 'x', metadata }]), role),
        );
      }
      await expectDenied(queue.enqueue(roles.as(role).db, work, 'x', { metadata: { tenant: 'a' } }));
      expect([...(await database.client`select * from queue_jobs`)]).toEqual([]);
    },
  );

  test('enqueues in every way, by a role that may do nothing else', async () => {
    const enqueued = await forTenant(
      'a',
      async (tx) => {
        const options = { metadata: { tenant: 'a' } };
        const first = await queue.enqueue(tx, work, 'a1', { ...options, uniqueKey: 'a/k' });
        const again = await queue.enqueue(tx, work, 'a1', { ...options, uniqueKey: 'a/k' });
        expect(again).toEqual({ id: first.id, duplicate: true, outcome: 'duplicate' });
        return await queue.enqueueMany(tx, work, [
          { payload: 'a2', ...options, uniqueKey: 'a/k' },
          { payload: 'a3', ...options, uniqueKey: 'a/l' },
        ]);
      },
      'app_web',
    );
    expect(enqueued.map(({ duplicate }) => duplicate)).toEqual([true, false]);
    expect(await payloadsOf('a')).toEqual(['a1', 'a3']);
  });
});

test('a unique key that does not hold the tenant collides, with an error that says so', async () => {
  const options = (tenant: string) => ({ metadata: { tenant }, uniqueKey: 'same' });
  await forTenant('a', (tx) => queue.enqueue(tx, work, 'a1', options('a')));
  const second = forTenant('b', (tx) => queue.enqueue(tx, work, 'b1', options('b')));
  await expect(second).rejects.toThrow(
    /hidden from this role by row-level security .*make the tenant a part of the key/,
  );
  expect(await payloadsOf('b')).toEqual([]);
});

describe('what the second of two tenants with one key meets', () => {
  const keyed = createQueue({ keys: queueKeys });
  beforeAll(async () => {
    for (const code of pageBlocks(['grant '], 'control')) await roles.run(code);
  });
  const dropped = { id: undefined };

  test.each<[string, unknown, (tx: Tx, metadata: Metadata) => Promise<unknown>]>([
    ['uniqueKey', 'QueueError', (tx, metadata) => keyed.enqueue(tx, work, '', { uniqueKey: 'k', metadata })],
    [
      'one that waits',
      'QueueError',
      (tx, metadata) => keyed.enqueue(tx, work, '', { uniqueKey: 'k', unique: 'waiting', metadata }),
    ],
    [
      'debounce',
      '42501',
      (tx, metadata) => keyed.enqueue(tx, work, '', { debounce: { key: 'k', delayMs: 60_000 }, metadata }),
    ],
    [
      'replace',
      '42501',
      (tx, metadata) => keyed.enqueue(tx, work, '', { replace: { key: 'k' }, delayMs: 60_000, metadata }),
    ],
    [
      'throttle',
      dropped,
      (tx, metadata) => keyed.enqueue(tx, work, '', { throttle: { key: 'k', perMs: 60_000 }, metadata }),
    ],
    [
      'unique for a time',
      dropped,
      (tx, metadata) => keyed.enqueue(tx, work, '', { uniqueKey: 'k', unique: { forMs: 60_000 }, metadata }),
    ],
  ])('%s', async (_, expected, enqueue) => {
    const put = (tenant: string) => forTenant(tenant, (tx) => enqueue(tx, { tenant }), 'app_web');
    await put('a');
    const met = await put('b').catch((error: unknown) =>
      error instanceof QueueError ? 'QueueError' : sqlStateOf(error),
    );
    if (typeof expected === 'string') expect(met).toBe(expected);
    else expect(met).toMatchObject(dropped);
    expect(await payloadsOf('b')).toEqual([]);
    expect(await payloadsOf('a')).toEqual(['']);
  });
  beforeEach(() => emptyTables(database.client, 'queue_keys'));
});

test('a worker serves all tenants, and each sees its own results', async () => {
  await enqueueFor('a', 'a1');
  await enqueueFor('b', 'b1');
  await runAll();
  expect(await payloadsOf('a')).toEqual(['a1']);
  const [result] = await forTenant('b', (tx) => queue.list(tx).then(({ jobs }) => jobs));
  expect(result).toMatchObject({ payload: 'b1', state: 'discarded', metadata: { tenant: 'b' } });
});

/** A worker of its role discards whatever is due, of all tenants. */
async function runAll(): Promise<void> {
  const worker = createWorker(roles.as('app_worker').db, {
    queue,
    handlers: [
      handle(work, () => {
        throw new NonRetryableError('never');
      }),
    ],
  });
  const errors: unknown[] = [];
  worker.on('error', (event) => errors.push(event));
  await worker.start();
  await until(async () => (await database.client`select from queue_jobs`).length === 0);
  await worker.stop();
  expect(errors).toEqual([]);
}

describe('queue.check', () => {
  const missing = async (role: RoleName) =>
    (await queue.check(roles.as(role).db)).filter(({ code }) => code === 'policy-missing');

  test('warns a role that may read the tables and has no policy', async () => {
    expect(await missing('app_reader')).toMatchObject([
      {
        severity: 'warning',
        message: expect.stringMatching(
          /^Row-level security hides all rows of "queue_jobs", "queue_results" from/,
        ),
      },
    ]);
  });

  test('says nothing to roles with a policy, or with the rights of a role that has one', async () => {
    for (const role of ['app_worker', 'app_admin'] as const) expect(await missing(role)).toEqual([]);
    expect((await queue.check(database.db)).map(({ code }) => code)).not.toContain('policy-missing');
    await roles.run('grant app_worker to app_reader');
    try {
      expect(await missing('app_reader')).toEqual([]);
    } finally {
      await roles.run('revoke app_worker from app_reader');
    }
  });
});
