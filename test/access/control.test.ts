import { inspect } from 'node:util';
import { sql } from 'drizzle-orm';
import {
  createQueue,
  createWorker,
  defineJob,
  defineSchedule,
  handle,
  limitsIn,
  NonRetryableError,
  schedulesIn,
  unvalidated,
} from 'drizzle-queue';
import * as control from 'drizzle-queue/schema/control';
import { beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { sqlStateOf } from '../../src/core/sql/executor.ts';
import { clearTables } from '../queries/support/jobs.ts';
import { addControlTables } from '../support/control-tables.ts';
import { emptyTables } from '../support/empty-tables.ts';
import { type Connection, useTestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';
import { expectDenied } from './denied.ts';
import { pageBlocks, type RoleName, useRoles } from './use-roles.ts';

const database = useTestDatabase();
const roles = useRoles(database, ['grant ']);
const queue = createQueue({
  limits: limitsIn(control, {
    few: { concurrency: 2, groups: { serial: 'success', rate: { limit: 1_000, perMs: 1_000 } } },
  }),
  schedules: schedulesIn(control.queueSchedules),
  keys: control.queueKeys,
});
const payload = unvalidated<{ n: number }>();
const step = defineJob('step', { payload, queue: 'few', group: ({ n }) => `g${n % 2}` });
const hourly = (name: string) =>
  defineSchedule(name, { job: step, payload: { n: 0 }, every: 3_600_000, startsAt: new Date(0) });

beforeAll(() => addControlTables(database));
beforeEach(async () => {
  await clearTables(database.client);
  await emptyTables(
    database.client,
    'queue_schedules',
    'queue_limits',
    'queue_usage',
    'queue_groups',
    'queue_holds',
    'queue_notes',
    'queue_keys',
  );
});

type Part = (db: Connection['db']) => Promise<unknown>;

interface Grant {
  readonly privilege: string;
  readonly table: string;
  readonly role: string;
}

/** What the page grants beyond the rights without schedules, limits and keys, one right at a time. */
const grants: readonly Grant[] = pageBlocks(['grant '], 'control').flatMap((code) =>
  [...code.matchAll(/grant ([a-z_, ()]+) on ([a-z_, ]+) to ([a-z_]+);/g)].flatMap(
    ([, privileges = '', tables = '', role = '']) =>
      tables
        .split(', ')
        .flatMap((table) => privileges.split(', ').map((privilege) => ({ privilege, table, role }))),
  ),
);
const grantsOf = (role: RoleName) => grants.filter((grant) => grant.role === role);
const give = async (given: readonly Grant[]) => {
  for (const { privilege, table, role } of given)
    await roles.run(`grant ${privilege} on ${table} to ${role}`);
};
/** Not what the page grants without them. */
const take = async (taken: readonly Grant[]) => {
  for (const { privilege, table, role } of taken)
    await roles.run(`revoke ${privilege} on ${table} from ${role}`);
  for (const code of pageBlocks(['grant '], 'core')) await roles.run(code);
};

/** Which part a role may not do, and why; each is a transaction of its own. */
async function denied({ db }: Connection, parts: readonly Part[]): Promise<string | undefined> {
  for (const part of parts) {
    const failed = await part(db).then(
      () => undefined,
      (error: unknown) => error,
    );
    if (failed !== undefined && sqlStateOf(failed) !== '42501') throw failed;
    if (failed !== undefined) return `${part}: ${inspect(failed)}`;
  }
  return undefined;
}

const rows = (db: Connection['db']) =>
  db.select({ n: sql<number>`n`.as('n') }).from(sql`generate_series(1, 3) as n`);
const entries = [{ payload: { n: 1 } }, { payload: { n: 2 } }];
const keyed = entries.map((entry, n) => ({ ...entry, uniqueKey: `k${n}` }));

const enqueuing: readonly Part[] = [
  (db) => queue.enqueue(db, step, { n: 1 }),
  (db) => queue.enqueue(db, step, { n: 1 }, { uniqueKey: 'one' }),
  (db) => queue.enqueueMany(db, step, entries),
  (db) => queue.enqueueMany(db, step, [...keyed, ...keyed]),
  (db) => queue.enqueueFrom(db, step, rows(db), { group: 'g' }),
  async (db) => await queue.enqueueQuery(db, step, { n: 1 }),
];
/** Each twice: the second meets the first. */
const byKey: readonly Part[] = [1, 2].flatMap(() => [
  (db) => queue.enqueue(db, step, { n: 1 }, { debounce: { key: 'd', delayMs: 60_000 } }),
  (db) => queue.enqueue(db, step, { n: 1 }, { replace: { key: 'r' } }),
  (db) => queue.enqueue(db, step, { n: 1 }, { throttle: { key: 't', perMs: 60_000 } }),
  (db) => queue.enqueue(db, step, { n: 1 }, { throttle: { key: 's', perMs: 60_000, trailing: true } }),
  (db) => queue.enqueue(db, step, { n: 1 }, { uniqueKey: 'w', unique: 'waiting' }),
  (db) => queue.enqueue(db, step, { n: 1 }, { uniqueKey: 'u', unique: { forMs: 60_000 } }),
]);

const limit = { queue: 'few', group: 'g0' };
const intervening: readonly Part[] = [
  (db) => queue.schedules.set(db, hourly('a')),
  (db) => queue.schedules.set(db, hourly('a')),
  (db) => queue.schedules.pause(db, 'a'),
  (db) => queue.schedules.resume(db, 'a'),
  (db) => queue.schedules.runNow(db, 'a'),
  (db) => queue.schedules.list(db),
  (db) => queue.schedules.remove(db, 'a'),
  (db) => queue.limits.set(db, { queue: 'few' }, { concurrency: 1 }),
  (db) => queue.limits.set(db, limit, { weight: 2 }),
  (db) => queue.limits.set(db, limit, null),
  (db) => queue.limits.set(db, { ...limit, group: '*' }, { weight: 2 }),
  (db) => queue.limits.list(db, { queue: 'few' }),
  (db) => queue.limits.unblock(db, { queue: 'few', group: 'g1' }),
  (db) => queue.redrive(db, { queue: 'few' }),
  (db) => queue.redrive(db, { all: true }),
  async (db) => {
    const { jobs } = await queue.list(database.db, { queue: 'few' });
    for (const { id } of jobs) await queue.cancel(db, id);
  },
];

const toGroups = ({ table, privilege }: Grant) =>
  table === 'queue_notes' || privilege === 'select (group_key)';

describe.each([
  ['app_web, into queues with groups', 'app_web', grantsOf('app_web').filter(toGroups), enqueuing],
  [
    'app_web, by keys',
    'app_web',
    grantsOf('app_web').filter(({ privilege }) => privilege !== 'select (group_key)'),
    byKey,
  ],
  ['app_admin', 'app_admin', grantsOf('app_admin'), intervening],
] as const)('the role %s', (_, role, given, parts) => {
  test('does all of it with what the page grants, and not without any one of these rights', async () => {
    expect(given.length).toBeGreaterThan(1);
    await give(given);
    expect(await denied(roles.as(role), parts)).toBeUndefined();
    const needless: Grant[] = [];
    for (const grant of given) {
      await take([grant]);
      if ((await denied(roles.as(role), parts)) === undefined) needless.push(grant);
      await give([grant]);
    }
    expect(needless).toEqual([]);
    await take(given);
    expect(await denied(roles.as(role), parts)).toBeDefined();
  });
});

test('a role that enqueues reads no job without the rights for key rules, and sets nothing', async () => {
  await give(grantsOf('app_web').filter(toGroups));
  const { db } = roles.as('app_web');
  await queue.enqueue(db, step, { n: 1 });
  await expectDenied(queue.list(db));
  await expectDenied(queue.limits.set(db, limit, { weight: 2 }));
  await expectDenied(queue.limits.list(db, { queue: 'few' }));
  await expectDenied(queue.limits.groups(db, { queue: 'few' }));
  await expectDenied(queue.schedules.set(db, hourly('a')));
  await expectDenied(db.execute(sql`table queue_notes`));
});

test('a role that reads lists schedules, limits and groups, and changes none', async () => {
  await give(grantsOf('app_reader'));
  await queue.schedules.set(database.db, hourly('a'));
  await queue.limits.set(database.db, { queue: 'few' }, { concurrency: 1 });
  const { db } = roles.as('app_reader');
  expect((await queue.schedules.list(db)).schedules).toHaveLength(1);
  expect(await queue.schedules.find(db, 'a')).toBeDefined();
  expect((await queue.limits.list(db, { queue: 'few' })).limits.length).toBeGreaterThan(0);
  expect((await queue.limits.groups(db, { queue: 'few' })).groups).toEqual([]);
  await expectDenied(queue.limits.set(db, { queue: 'few' }, null));
  await expectDenied(queue.limits.unblock(db, { queue: 'few', group: 'g0' }));
  await expectDenied(queue.schedules.pause(db, 'a'));
});

test('a worker lacks what the page grants, no more and no less, and does everything with it', async () => {
  const { db } = roles.as('app_worker');
  const failing = new Set([1]);
  const ran: number[] = [];
  const options = {
    queue,
    handlers: [
      handle(step, ({ payload: { n } }) => {
        ran.push(n);
        if (failing.delete(n)) throw new NonRetryableError('once');
      }),
    ],
    queues: { few: {} },
    schedules: [hourly('declared')],
  };
  const refused = await createWorker(db, options)
    .start()
    .catch((error: unknown) => String(error));
  const named = [...String(refused).matchAll(/grant (\w+) on "(\w+)" to/g)];
  const lacking = named.map(([, privilege, table]) => `${privilege} on ${table}`);
  const given = grantsOf('app_worker');
  expect(lacking.sort()).toEqual(given.map(({ privilege, table }) => `${privilege} on ${table}`).sort());
  await give(given);

  const worker = createWorker(db, options);
  onTestFinished(() => worker.stop());
  const errors: unknown[] = [];
  worker.on('error', (event) => errors.push(event));
  let discarded = 0;
  worker.on('discarded', () => discarded++);
  await worker.start();
  await queue.enqueueMany(database.db, step, [{ payload: { n: 1 } }, { payload: { n: 3 } }]);
  await queue.schedules.set(
    database.db,
    defineSchedule('set', { job: step, payload: { n: 2 }, every: 1_000 }),
  );
  await until(() => ran.includes(2) && discarded === 1);
  // The discarded one has stopped its group.
  expect(ran).not.toContain(3);
  expect(await queue.redrive(database.db, { queue: 'few' })).toEqual({ redriven: 1, duplicates: 0 });
  await until(() => ran.includes(3));
  await worker.stop();
  expect(errors).toEqual([]);
});
