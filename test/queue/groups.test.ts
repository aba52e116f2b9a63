import { sql } from 'drizzle-orm';
import {
  createQueue,
  defineJob,
  defineSchedule,
  limitsIn,
  MissingMigrationError,
  schedulesIn,
  unvalidated,
} from 'drizzle-queue';
import * as control from 'drizzle-queue/schema/control';
import { beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { fireSchedules } from '../../src/features/schedules/queries/fire-schedules.ts';
import { unparkJobs } from '../../src/features/workflows/queries/unpark-jobs.ts';
import { clearTables, tables } from '../queries/support/jobs.ts';
import { begin, commit, twoBackends } from '../queries/support/locks.ts';
import { addControlTables } from '../support/control-tables.ts';
import { useTestDatabase } from '../support/test-database.ts';

const database = useTestDatabase();

beforeAll(() => addControlTables(database));

beforeEach(async () => {
  await clearTables(database.client);
  await database.client.unsafe(
    'delete from queue_notes; delete from queue_holds; delete from queue_schedules',
  );
});

const grouped = createQueue({
  limits: limitsIn(control, { exports: { groups: {} }, mail: { groups: {} } }),
  schedules: schedulesIn(control.queueSchedules),
});
const plain = createQueue();

const exported = defineJob('export', {
  payload: unvalidated<{ tenant: string; rows: number }>(),
  queue: 'exports',
  group: ({ tenant }) => tenant,
  cost: ({ rows }) => rows,
});
const note = defineJob('note', { payload: unvalidated<number>() });

async function placed(): Promise<unknown[]> {
  return await database.client`
    select id::int, queue, group_key as group, weight as cost from queue_jobs order by id`.then((rows) => [
    ...rows,
  ]);
}

/** How long after its first job each group is noted, in milliseconds. */
async function noted(): Promise<{ queue: string; group: string; late: number }[]> {
  return await database.client<{ queue: string; group: string; late: number }[]>`
    select n.queue, k.group_key as group,
      (extract(epoch from n.due_at - min(j.run_at)) * 1000)::float8 as late
    from queue_notes as n cross join unnest(n.group_keys) as k(group_key)
    left join queue_jobs as j on j.queue = n.queue and j.group_key = k.group_key
    group by n.id, n.queue, k.group_key, n.due_at order by n.queue, k.group_key, late desc, n.id`;
}

describe('a job of a queue with groups', () => {
  test('is in its group, which is noted for when the job is due', async () => {
    const { id } = await grouped.enqueue(
      database.db,
      exported,
      { tenant: 'acme', rows: 3 },
      { delayMs: 90_000 },
    );
    expect(await placed()).toEqual([{ id, queue: 'exports', group: 'acme', cost: 3 }]);
    expect(await noted()).toEqual([{ queue: 'exports', group: 'acme', late: 0 }]);
  });

  test('without a group of its own is in the one of those', async () => {
    const { id } = await grouped.enqueue(database.db, note, 1, { queue: 'mail' });
    expect(await placed()).toEqual([{ id, queue: 'mail', group: '-', cost: 1 }]);
    expect(await noted()).toEqual([{ queue: 'mail', group: '-', late: 0 }]);
  });

  test('keeps the group that its enqueue names', async () => {
    await grouped.enqueue(database.db, exported, { tenant: 'acme', rows: 3 }, { group: 'other', cost: 9 });
    expect(await placed()).toMatchObject([{ group: 'other', cost: 9 }]);
  });

  test('says its group to whoever looks, and none for none', async () => {
    const own = await grouped.enqueue(database.db, exported, { tenant: 'acme', rows: 1 });
    const none = await grouped.enqueue(database.db, note, 1, { queue: 'exports' });
    expect(await grouped.find(database.db, own.id)).toMatchObject({ group: 'acme' });
    expect(await grouped.find(database.db, none.id)).toMatchObject({ group: null });
    await grouped.cancel(database.db, own.id);
    expect(await grouped.find(database.db, own.id)).toMatchObject({ state: 'cancelled', group: 'acme' });
  });

  test('is found by its group', async () => {
    const ids: number[] = [];
    for (const tenant of ['a', 'b', 'a'])
      ids.push((await grouped.enqueue(database.db, exported, { tenant, rows: 1 })).id);
    await grouped.cancel(database.db, ids[0] ?? 0);
    const { jobs } = await grouped.list(database.db, { queue: 'exports', group: 'a' });
    expect(jobs.map(({ id }) => id)).toEqual([ids[2], ids[0]]);
    await expect(grouped.list(database.db, { group: 'a' })).rejects.toThrow('group needs queue');
  });
});

describe('many at once', () => {
  test('groups that are due at the same time share notes', async () => {
    const of = (n: number, delayMs: number) => ({ payload: n, queue: 'exports', group: `g${n}`, delayMs });
    await grouped.enqueueMany(database.db, note, [
      ...Array.from({ length: 45 }, (_, n) => of(n, 0)),
      ...Array.from({ length: 3 }, (_, n) => of(n + 45, 60_000)),
    ]);
    const notes = await database.client<{ soon: boolean; groups: number }[]>`
      select due_at < now() + interval '30 s' as soon, cardinality(group_keys) as groups from queue_notes`;
    const groupsOf = (soon: boolean) => notes.filter((one) => one.soon === soon).map(({ groups }) => groups);
    expect(groupsOf(true).reduce((a, b) => a + b)).toBe(45);
    expect(groupsOf(false).reduce((a, b) => a + b)).toBe(3);
    expect(notes.length).toBeLessThanOrEqual(5);
    expect(new Set((await noted()).map(({ group }) => group)).size).toBe(48);
  });

  const entries = [
    { payload: 1, queue: 'exports', group: 'b', delayMs: 60_000 },
    { payload: 2, queue: 'plain' },
    { payload: 3, queue: 'exports', group: 'a', cost: 5 },
    { payload: 4, queue: 'exports', group: 'b', delayMs: 30_000 },
    { payload: 5, queue: 'mail' },
  ];
  const expected = [
    { queue: 'exports', group: 'b', cost: 1 },
    { queue: 'plain', group: null, cost: 1 },
    { queue: 'exports', group: 'a', cost: 5 },
    { queue: 'exports', group: 'b', cost: 1 },
    { queue: 'mail', group: '-', cost: 1 },
  ];

  test.each([
    ['without keys', entries],
    ['with keys', entries.map((entry) => ({ ...entry, uniqueKey: `key ${entry.payload}` }))],
  ])('%s, of queues with groups and without: one note for each group and time', async (_, jobs) => {
    const answers = await grouped.enqueueMany(database.db, note, jobs);
    expect(answers.map(({ duplicate }) => duplicate)).toEqual(jobs.map(() => false));
    expect(await placed()).toMatchObject(expected);
    expect(await noted()).toEqual([
      { queue: 'exports', group: 'a', late: 0 },
      { queue: 'exports', group: 'b', late: 30_000 },
      { queue: 'exports', group: 'b', late: 0 },
      { queue: 'mail', group: '-', late: 0 },
    ]);
  });

  test('a duplicate notes nothing', async () => {
    const options = { queue: 'exports', group: 'a', uniqueKey: 'k' };
    const entry = { ...options, payload: 1 };
    await grouped.enqueueMany(database.db, note, [entry, entry]);
    await grouped.enqueue(database.db, note, 1, options);
    expect(await noted()).toHaveLength(1);
  });

  test('a million rows would not differ: enqueueFrom takes a value, or an expression', async () => {
    const rows = database.db
      .select({ tenant: sql<string>`'t' || n`.as('tenant'), rows: sql<number>`n`.as('rows') })
      .from(sql`generate_series(0, 4) as n`);
    await grouped.enqueueFrom(database.db, exported, rows, {
      group: (row) => sql`case when ${row.rows} < 3 then ${row.tenant} else '' end`,
      cost: (row) => sql`${row.rows} * 5000`,
      delayMs: 1_000,
    });
    expect(await placed()).toMatchObject([
      { group: 't0', cost: 1 },
      { group: 't1', cost: 5_000 },
      { group: 't2', cost: 10_000 },
      { group: '-', cost: 10_000 },
      { group: '-', cost: 10_000 },
    ]);
    expect(await noted()).toEqual(
      ['-', 't0', 't1', 't2'].map((group) => ({ queue: 'exports', group, late: 0 })),
    );
    await clearTables(database.client);
    await grouped.enqueueFrom(database.db, exported, rows, {
      group: 'all',
      cost: 2,
      uniqueKey: (row) => sql`${row.tenant}`,
    });
    expect(await placed()).toMatchObject(Array(5).fill({ group: 'all', cost: 2 }));
  });

  test('enqueueFrom cannot ask a function of the definition', async () => {
    const rows = database.db.select({
      tenant: sql<string>`'t'`.as('tenant'),
      rows: sql<number>`1`.as('rows'),
    });
    const select = rows.from(sql`generate_series(1, 2) as n`);
    await expect(grouped.enqueueFrom(database.db, exported, select)).rejects.toThrow(
      "enqueueFrom('export'): group must be given",
    );
    await expect(grouped.enqueueFrom(database.db, exported, select, { group: 'g' })).rejects.toThrow(
      "enqueueFrom('export'): cost must be given",
    );
    await expect(grouped.enqueueFrom(database.db, exported, select, { group: '*', cost: 1 })).rejects.toThrow(
      "enqueueFrom('export'): group must not be '*'",
    );
    expect(await placed()).toEqual([]);
  });

  test('in a batch', async () => {
    await grouped.enqueueQuery(database.db, exported, { tenant: 'acme', rows: 2 });
    expect(await placed()).toMatchObject([{ group: 'acme', cost: 2 }]);
    expect(await noted()).toHaveLength(1);
  });
});

describe('where the queue has no groups', () => {
  const message = "`limits: limitsIn(control, { 'exports': { groups: 'fair' } })`";

  test('a group or a cost is refused, whoever names it, and nothing is sent', async () => {
    const payload = { tenant: 'acme', rows: 1 };
    const { db } = database;
    await expect(plain.enqueue(db, exported, payload)).rejects.toThrow(message);
    await expect(plain.enqueueMany(db, exported, [{ payload }])).rejects.toThrow(message);
    expect(() => plain.enqueueQuery(db, exported, payload)).toThrow(message);
    const rows = db.select({ n: sql<number>`n`.as('n') }).from(sql`generate_series(1, 2) as n`);
    const many = defineJob('many', { payload: unvalidated<{ n: number }>(), queue: 'exports' });
    await expect(plain.enqueueFrom(db, many, rows, { group: 'g' })).rejects.toThrow(message);
    await expect(plain.enqueueFrom(db, many, rows, { cost: 2 })).rejects.toThrow(message);
    await expect(plain.enqueue(db, note, 1, { group: 'g' })).rejects.toThrow(
      "{ 'default': { groups: 'fair' } }",
    );
    await expect(plain.enqueue(db, note, 1, { cost: 2 })).rejects.toThrow('cost is for queues with groups');
    await expect(grouped.enqueue(db, exported, payload, { queue: 'other' })).rejects.toThrow(TypeError);
    expect(await placed()).toEqual([]);
  });

  test('jobs have none', async () => {
    await grouped.enqueue(database.db, note, 1);
    expect(await placed()).toMatchObject([{ group: null, cost: null }]);
    expect(await noted()).toEqual([]);
  });
});

describe('schedules', () => {
  const hourly = defineSchedule('hourly', {
    job: exported,
    payload: { tenant: 'acme', rows: 4 },
    every: 3_600_000,
  });
  const bare = defineSchedule('bare', {
    job: note,
    payload: 1,
    every: 3_600_000,
    options: { queue: 'mail' },
  });
  const outside = defineSchedule('outside', { job: note, payload: 1, every: 3_600_000 });

  test('fire jobs into their groups', async () => {
    for (const schedule of [hourly, bare, outside]) await grouped.schedules.set(database.db, schedule);
    const set = await database.client<{ name: string; revision: string }[]>`
      select name, revision from queue_schedules order by position(name in 'hourly bare outside')`;
    const firing = { ticks: [Date.now()], passedMs: Date.now(), nextMs: null };
    const firings = set.map(({ name, revision }) => ({ ...firing, name, revision: Number(revision) }));
    expect(await fireSchedules(database.db, grouped.schedules.tables, firings, undefined)).toHaveLength(3);
    expect(await placed()).toMatchObject([
      { queue: 'exports', group: 'acme', cost: 4 },
      { queue: 'mail', group: '-', cost: 1 },
      { queue: 'default', group: null, cost: 1 },
    ]);
    expect(await noted()).toMatchObject([{ group: 'acme' }, { group: '-' }]);
  });

  test('are run now into their groups', async () => {
    await grouped.schedules.set(database.db, hourly);
    await grouped.schedules.runNow(database.db, 'hourly');
    expect(await placed()).toMatchObject([{ queue: 'exports', group: 'acme', cost: 4 }]);
    expect(await noted()).toHaveLength(1);
  });

  test('are refused a group of a queue without groups', async () => {
    const set = createQueue({ schedules: schedulesIn(control.queueSchedules) });
    await expect(set.schedules.set(database.db, hourly)).rejects.toThrow('limitsIn(control');
  });
});

describe('a job that comes back', () => {
  async function discard(id: number): Promise<void> {
    await database.client`
      with gone as (delete from queue_jobs where id = ${id} returning *)
      insert into queue_results (job_id, queue, kind, payload, state, errors, attempt, max_attempts, priority, weight,
        fence, group_key, metadata, created_at, run_at)
      select id, queue, kind, payload, 'discarded', errors, attempt, max_attempts, priority, weight,
        fence, group_key, metadata, created_at, run_at from gone`;
    await database.client`
      insert into queue_holds (queue, group_key, job_id, until)
      select queue, coalesce(group_key, '-'), job_id, 'infinity' from queue_results where job_id = ${id}`;
    await database.client`delete from queue_notes`;
  }

  const holds = async () => (await database.client`select from queue_holds`).length;

  test.each([
    ['by its id', (id: number) => id],
    ['by its queue', () => ({ queue: 'exports' })],
    ['with all', () => ({ all: true }) as const],
  ])('%s is noted, and its group goes on', async (_, which) => {
    const { id } = await grouped.enqueue(database.db, exported, { tenant: 'acme', rows: 3 });
    await discard(id);
    await database.client`
      insert into queue_holds values ('exports', 'acme', 1, now() + interval '1 h'), ('exports', 'b', ${id}, 'infinity')`;
    expect(await grouped.redrive(database.db, which(id))).toEqual({ redriven: 1, duplicates: 0 });
    expect(await placed()).toEqual([{ id, queue: 'exports', group: 'acme', cost: 3 }]);
    expect(await noted()).toEqual([{ queue: 'exports', group: 'acme', late: 0 }]);
    expect(await holds()).toBe(2);
  });

  test('has a group although it ended when its queue had none', async () => {
    const { id } = await plain.enqueue(database.db, note, 1, { queue: 'exports' });
    const other = await plain.enqueue(database.db, note, 1, { queue: 'other' });
    await discard(id);
    await discard(other.id);
    expect(await grouped.redrive(database.db, { all: true })).toMatchObject({ redriven: 2 });
    expect(await placed()).toMatchObject([{ group: '-' }, { queue: 'other', group: null }]);
    expect(await noted()).toMatchObject([{ queue: 'exports', group: '-' }]);
  });

  test('from a wait is noted', async () => {
    const { id } = await grouped.enqueue(database.db, exported, { tenant: 'acme', rows: 3 });
    await database.client`update queue_jobs set run_at = 'infinity'`;
    await database.client`delete from queue_notes`;
    const unpark = { queue: 'exports', ids: [id], onlyWaiting: false, channel: undefined };
    expect(await unparkJobs(database.db, grouped.tables, unpark)).toEqual(new Set([id]));
    expect(await noted()).toEqual([{ queue: 'exports', group: 'acme', late: 0 }]);
  });
});

test('enqueues of one group wait for no open transaction, and deadlock in no order', async () => {
  const [one, two] = await twoBackends(database);
  const enqueue = (db: typeof one.db, tenants: readonly string[]) =>
    grouped.enqueueMany(
      db,
      exported,
      tenants.map((tenant) => ({ payload: { tenant, rows: 1 } })),
    );
  await begin(one);
  await begin(two);
  await enqueue(one.db, ['a', 'b']);
  await enqueue(two.db, ['b', 'a']);
  await enqueue(one.db, ['b']);
  await enqueue(two.db, ['a']);
  await commit(one);
  await commit(two);
  expect(await placed()).toHaveLength(6);
});

describe('without the tables of limits', () => {
  const bare = useTestDatabase();

  test('an enqueue names the line that the schema lacks', async () => {
    const failed = grouped.enqueue(bare.db, exported, { tenant: 'acme', rows: 1 });
    await expect(failed).rejects.toThrow(MissingMigrationError);
    await expect(failed).rejects.toThrow("`export * from 'drizzle-queue/schema/control'`");
    expect(tables.queueJobs).toBe(plain.tables.queueJobs);
  });

  test('an enqueue into a queue without groups names only the tables that it uses', async () => {
    await bare.client`alter table queue_jobs rename to elsewhere`;
    const limited = createQueue({ limits: limitsIn(control, { plain: { concurrency: 2 } }) });
    const failed = limited.enqueue(bare.db, defineJob('plain', { queue: 'plain' }));
    await expect(failed).rejects.toThrow(MissingMigrationError);
    await expect(failed).rejects.not.toThrow('drizzle-queue/schema/control');
    await bare.client`alter table elsewhere rename to queue_jobs`;
  });
});
