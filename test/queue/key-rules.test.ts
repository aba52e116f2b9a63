import { sql } from 'drizzle-orm';
import { text as textColumn } from 'drizzle-orm/pg-core';
import { createQueue, defineJob, limitsIn, MissingMigrationError, unvalidated } from 'drizzle-queue';
import { createQueueTables } from 'drizzle-queue/schema';
import * as control from 'drizzle-queue/schema/control';
import { beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { pruneKeys } from '../../src/features/keys/queries/prune-keys.ts';
import { claim, clearTables, jobRow, tables } from '../queries/support/jobs.ts';
import { twoBackends } from '../queries/support/locks.ts';
import { onThisServer } from '../support/citus.ts';
import { addControlTables } from '../support/control-tables.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';
import { intercepted } from './support/executors.ts';

const database = useTestDatabase();

beforeAll(() => addControlTables(database));

beforeEach(async () => {
  await clearTables(database.client);
  await database.client.unsafe('delete from queue_keys; delete from queue_notes');
});

const queue = createQueue({ keys: control.queueKeys });
const sync = defineJob('sync', { payload: unvalidated<number>(), queue: 'q' });
const other = defineJob('other', { payload: unvalidated<number>(), queue: 'q' });

const liveJobs = async () =>
  await database.client<{ id: number; payload: unknown; in: number; priority: number }[]>`
    select id::int, payload, priority, (extract(epoch from run_at - created_at) * 1000)::float8 as in
    from queue_jobs order by id`.then((rows) => [...rows]);

/** Lets time pass, as far as the tables know. */
async function pass(ms: number): Promise<void> {
  const { client } = database;
  // Without a zone, since a cluster lets only immutable functions read columns in an update.
  const earlier = (column: string) =>
    client`(${client(column)} at time zone 'UTC' - ${ms} * interval '1 ms') at time zone 'UTC'`;
  await client`update queue_jobs set run_at = ${earlier('run_at')}, created_at = ${earlier('created_at')}`;
  await client`update queue_keys set until = ${earlier('until')}`;
}

const claimAll = () => claim(database.db, { kinds: ['sync', 'other'], limit: 10 });

describe('debounce', () => {
  const debounce = { key: 'doc', delayMs: 1_000 };

  test('makes one job of all calls, with what the last one says, due after that', async () => {
    const first = await queue.enqueue(database.db, sync, 1, { debounce, priority: 9 });
    expect(first).toEqual({ id: first.id, duplicate: false, outcome: 'enqueued' });
    await pass(900);
    const again = await queue.enqueue(database.db, sync, 2, { debounce, metadata: { a: 1 }, maxAttempts: 3 });
    expect(again).toEqual({ id: first.id, duplicate: false, outcome: 'replaced' });
    const [live, ...more] = await liveJobs();
    expect(more).toEqual([]);
    expect(live).toMatchObject({ id: first.id, payload: 2, priority: 5 });
    expect(live?.in).toBeGreaterThanOrEqual(1_900);
    expect(await queue.find(database.db, first.id)).toMatchObject({ metadata: { a: 1 }, maxAttempts: 3 });
  });

  test('waits no longer than maxWaitMs after the first call', async () => {
    const limited = { ...debounce, maxWaitMs: 1_500 };
    await queue.enqueue(database.db, sync, 1, { debounce: limited });
    await pass(900);
    await queue.enqueue(database.db, sync, 2, { debounce: limited });
    expect(await liveJobs()).toMatchObject([{ payload: 2, in: 1_500 }]);
    expect(await claimAll()).toEqual([]);
    await pass(600);
    await queue.enqueue(database.db, sync, 3, { debounce: limited });
    expect(await claimAll()).toMatchObject([{ payload: 3 }]);
  });

  test('counts until the first claim: from then on a call makes another job', async () => {
    const first = await queue.enqueue(database.db, sync, 1, { debounce });
    await pass(1_000);
    const [job] = await claimAll();
    expect(job).toMatchObject({ id: first.id, payload: 1 });
    const second = await queue.enqueue(database.db, sync, 2, { debounce });
    expect(second.outcome).toBe('enqueued');
    // Given back, as one that was claimed ahead and has not begun, it stays a job of its own.
    await database.client`update queue_jobs set worker_id = null, claimed_at = null, attempt = 0`;
    const third = await queue.enqueue(database.db, sync, 3, { debounce });
    expect(third).toMatchObject({ id: second.id, outcome: 'replaced' });
    expect(await liveJobs()).toMatchObject([{ payload: 1 }, { payload: 3 }]);
  });

  test('is free again when the job was cancelled', async () => {
    const first = await queue.enqueue(database.db, sync, 1, { debounce });
    await queue.cancel(database.db, first.id);
    expect(await queue.enqueue(database.db, sync, 2, { debounce })).toMatchObject({ outcome: 'enqueued' });
  });

  test('counts per kind, queue and key', async () => {
    for (const [job, options] of [
      [sync, {}],
      [other, {}],
      [sync, { queue: 'p' }],
      [sync, { debounce: { ...debounce, key: 'doc ' } }],
    ] as const) {
      const answer = await queue.enqueue(database.db, job, 1, { debounce, ...options });
      expect(answer.outcome).toBe('enqueued');
    }
  });

  test('in bulk the last of each key prevails, and each has its answer', async () => {
    const standing = await queue.enqueue(database.db, sync, 0, { debounce: { ...debounce, key: 'b' } });
    const answers = await queue.enqueueMany(
      database.db,
      sync,
      ['a', 'b', 'a', 'c', 'a', 'b'].map((key, payload) => ({
        payload,
        debounce: { key, delayMs: 1_000 * (payload + 1) },
      })),
    );
    expect(answers.map(({ outcome }) => outcome)).toEqual([
      'enqueued',
      'replaced',
      'replaced',
      'enqueued',
      'replaced',
      'replaced',
    ]);
    const [a, b, a2, c, a3, b2] = answers.map(({ id }) => id);
    expect([a2, a3, b, b2]).toEqual([a, a, standing.id, standing.id]);
    expect(await liveJobs()).toMatchObject([
      { id: standing.id, payload: 5 },
      { id: a, payload: 4, in: 5_000 },
      { id: c, payload: 3, in: 4_000 },
    ]);
  });
});

describe('replace', () => {
  const replace = { key: 'account' };

  test('gives the waiting job the new payload and the new time', async () => {
    const first = await queue.enqueue(database.db, sync, 1, { replace, delayMs: 60_000 });
    const second = await queue.enqueue(database.db, sync, 2, { replace, delayMs: 30_000, priority: 1 });
    expect(second).toEqual({ id: first.id, duplicate: false, outcome: 'replaced' });
    const [job] = await liveJobs();
    expect(job).toMatchObject({ payload: 2, priority: 1 });
    expect(job?.in).toBeGreaterThanOrEqual(30_000);
    expect(job?.in).toBeLessThan(40_000);
  });

  test("or the old time with runAt: 'keep', in bulk too", async () => {
    const keep = { ...replace, runAt: 'keep' } as const;
    await queue.enqueue(database.db, sync, 1, { replace: keep, delayMs: 60_000 });
    await queue.enqueue(database.db, sync, 2, { replace: keep });
    expect(await liveJobs()).toMatchObject([{ payload: 2, in: 60_000 }]);
    await clearTables(database.client);
    await queue.enqueueMany(database.db, sync, [
      { payload: 1, replace: keep, delayMs: 60_000 },
      { payload: 2, replace: keep },
    ]);
    expect(await liveJobs()).toMatchObject([{ payload: 2, in: 60_000 }]);
  });

  test('wakes the workers of a job that it makes due', async () => {
    await queue.enqueue(database.db, sync, 1, { replace, delayMs: 60_000 });
    const sent: string[] = [];
    const db = intercepted(database.db, async ({ sql }) => {
      sent.push(sql);
    });
    await createQueue().enqueue(db, sync, 2, { replace });
    expect(sent.join()).toContain('pg_notify');
    expect(await claimAll()).toMatchObject([{ payload: 2 }]);
  });

  test('leaves a job alone that has run and is to be retried', async () => {
    const first = await queue.enqueue(database.db, sync, 1, { replace });
    await claimAll();
    await database.client`update queue_jobs set worker_id = null, run_at = now() + interval '1 h'`;
    const second = await queue.enqueue(database.db, sync, 2, { replace });
    expect(second).toMatchObject({ outcome: 'enqueued' });
    expect((await jobRow(database.client, first.id))?.payload).toBe(1);
  });

  test('of an own column that is left out brings its default back', async () => {
    const own = createQueueTables({ columns: { tenant: textColumn('tenant').default('none') } });
    const alter = async (change: string) => {
      for (const table of ['queue_jobs', 'queue_results'])
        await database.client.unsafe(`alter table ${table} ${change}`);
    };
    await alter("add tenant text default 'none'");
    const tenants = createQueue({ tables: own });
    const { id } = await tenants.enqueue(database.db, sync, 1, { replace, tenant: 'acme' });
    expect((await jobRow(database.client, id))?.tenant).toBe('acme');
    await tenants.enqueue(database.db, sync, 1, { replace, tenant: 'other' });
    expect((await jobRow(database.client, id))?.tenant).toBe('other');
    await tenants.enqueue(database.db, sync, 1, { replace });
    expect((await jobRow(database.client, id))?.tenant).toBe('none');
    await alter('drop tenant');
  });

  test('in a queue with groups notes the new group and the new time', async () => {
    const grouped = createQueue({ limits: limitsIn(control, { q: { groups: {} } }) });
    await grouped.enqueue(database.db, sync, 1, { replace, group: 'a', delayMs: 60_000 });
    await grouped.enqueue(database.db, sync, 2, { replace, group: 'b', cost: 7, delayMs: 5_000 });
    expect([...(await database.client`select group_key, weight from queue_jobs`)]).toEqual([
      { group_key: 'b', weight: 7 },
    ]);
    const notes = await database.client`
      select n.group_keys[1] as group_key, n.due_at = j.run_at as exact from queue_notes as n, queue_jobs as j
      where j.queue = n.queue order by n.id`;
    expect([...notes]).toEqual([
      { group_key: 'a', exact: false },
      { group_key: 'b', exact: true },
    ]);
  });
});

describe('in a queue with rates and no groups', () => {
  const rated = createQueue({
    keys: control.queueKeys,
    limits: limitsIn(control, { q: { rate: { limit: 10_000, perMs: 1_000 } } }),
  });

  test.each([
    ['replace', { replace: { key: 'a' } }],
    ['debounce', { debounce: { key: 'a', delayMs: 1_000 } }],
    ['throttle, trailing,', { throttle: { key: 'a', perMs: 1_000, trailing: true } }],
  ] as const)('%s leaves the cost of the earlier job behind', async (_, rule) => {
    const weights = async () =>
      (await database.client`select weight from queue_jobs`).map((row) => row.weight);
    await rated.enqueue(database.db, sync, 1, { ...rule, cost: 5_000 });
    expect(await weights()).toEqual([5_000]);
    await rated.enqueue(database.db, sync, 2, rule);
    expect(await weights()).toEqual([null]);
    await rated.enqueue(database.db, sync, 3, { ...rule, cost: 7 });
    expect(await weights()).toEqual([7]);
  });
});

describe('unique', () => {
  test("'waiting': one waits, while others of the key run", async () => {
    const options = { uniqueKey: 'k', unique: 'waiting' } as const;
    const first = await queue.enqueue(database.db, sync, 1, options);
    expect(first.outcome).toBe('enqueued');
    const again = await queue.enqueue(database.db, sync, 2, options);
    expect(again).toEqual({ id: first.id, duplicate: true, outcome: 'duplicate' });
    expect(await liveJobs()).toMatchObject([{ payload: 1 }]);
    await claimAll();
    expect(await queue.enqueue(database.db, sync, 3, options)).toMatchObject({ outcome: 'enqueued' });
    const bulk = await queue.enqueueMany(database.db, sync, [
      { payload: 4, ...options },
      { payload: 5, ...options, uniqueKey: 'l' },
      { payload: 6, ...options, uniqueKey: 'l' },
    ]);
    expect(bulk.map(({ outcome }) => outcome)).toEqual(['duplicate', 'enqueued', 'duplicate']);
    expect(bulk[2]?.id).toBe(bulk[1]?.id);
  });

  test("'waiting' is tried again when the job in its way is claimed at that moment", async () => {
    const options = { uniqueKey: 'k', unique: 'waiting' } as const;
    await queue.enqueue(database.db, sync, 1, options);
    const db = intercepted(database.db, async (_, sent) => {
      if (sent.length === 1) await claimAll();
    });
    expect(await queue.enqueue(db, sync, 2, options)).toMatchObject({ outcome: 'enqueued' });
    expect(await liveJobs()).toHaveLength(2);
  });

  test('{ forMs }: for a time, whatever becomes of the job', async () => {
    const options = { uniqueKey: 'k', unique: { forMs: 60_000 } } as const;
    const first = await queue.enqueue(database.db, sync, 1, options);
    expect(first).toEqual({ id: expect.any(Number), duplicate: false, outcome: 'enqueued' });
    await database.client`delete from queue_jobs`;
    const refused = { id: undefined, duplicate: true, outcome: 'duplicate' };
    expect(await queue.enqueue(database.db, sync, 2, options)).toEqual(refused);
    const bulk = await queue.enqueueMany(database.db, sync, [
      { payload: 3, ...options },
      { payload: 4, ...options, uniqueKey: 'l' },
      { payload: 5, ...options, uniqueKey: 'l' },
    ]);
    expect(bulk).toEqual([refused, { id: bulk[1]?.id, duplicate: false, outcome: 'enqueued' }, refused]);
    await pass(60_000);
    expect(await queue.enqueue(database.db, sync, 6, options)).toMatchObject({ outcome: 'enqueued' });
    expect(await liveJobs()).toMatchObject([{ payload: 4 }, { payload: 6 }]);
  });
});

describe('throttle', () => {
  const throttle = { key: 'user', perMs: 10_000 };
  const throttled = { id: undefined, duplicate: false, outcome: 'throttled' };

  test('lets one through in each window, whatever becomes of it', async () => {
    expect(await queue.enqueue(database.db, sync, 1, { throttle })).toMatchObject({ outcome: 'enqueued' });
    await database.client`delete from queue_jobs`;
    expect(await queue.enqueue(database.db, sync, 2, { throttle })).toEqual(throttled);
    await pass(9_000);
    expect(await queue.enqueue(database.db, sync, 3, { throttle })).toEqual(throttled);
    await pass(1_000);
    expect(await queue.enqueue(database.db, sync, 4, { throttle })).toMatchObject({ outcome: 'enqueued' });
    expect(await liveJobs()).toMatchObject([{ payload: 4 }]);
  });

  test('in bulk the first of each key is let through', async () => {
    await queue.enqueue(database.db, sync, 0, { throttle: { ...throttle, key: 'a' } });
    const entries = ['a', 'b', 'c', 'b'].map((key, payload) => ({ payload, throttle: { ...throttle, key } }));
    const answers = await queue.enqueueMany(database.db, sync, entries);
    expect(answers.map(({ outcome }) => outcome)).toEqual(['throttled', 'enqueued', 'enqueued', 'throttled']);
    expect(await liveJobs()).toMatchObject([
      { payload: 0 },
      { id: answers[1]?.id, payload: 1 },
      { id: answers[2]?.id, payload: 2 },
    ]);
  });

  test('is free again when the transaction that took the key is rolled back', async () => {
    const undone = database.db.transaction(async (tx) => {
      await queue.enqueue(tx, sync, 1, { throttle });
      throw new Error('undo');
    });
    await expect(undone).rejects.toThrow('undo');
    expect(await queue.enqueue(database.db, sync, 2, { throttle })).toMatchObject({ outcome: 'enqueued' });
  });

  test('trailing, the last that was refused is the job of the next window', async () => {
    const trailing = { ...throttle, trailing: true } as const;
    const call = (payload: number) => queue.enqueue(database.db, sync, payload, { throttle: trailing });
    const first = await call(1);
    // Nobody has begun it yet, so it says what the next call says.
    expect(await call(2)).toMatchObject({ id: first.id, outcome: 'replaced' });
    expect(await claimAll()).toMatchObject([{ id: first.id, payload: 2 }]);
    await pass(4_000);
    const next = await call(3);
    expect(next.outcome).toBe('enqueued');
    expect(await call(4)).toMatchObject({ id: next.id, outcome: 'replaced' });
    expect(await claimAll()).toEqual([]);
    await pass(6_100);
    expect(await claimAll()).toMatchObject([{ id: next.id, payload: 4 }]);
    // The window of the trailing job is not over: the next one is due after it.
    const third = await call(5);
    expect(third.outcome).toBe('enqueued');
    expect(await claimAll()).toEqual([]);
    const [due] = await database.client<{ ms: number }[]>`
      select (extract(epoch from j.run_at - f.run_at) * 1000)::float8 as ms from queue_jobs as j, queue_jobs as f
      where j.id = ${third.id} and f.id = ${next.id}`;
    expect(due?.ms).toBeCloseTo(10_000, 0);
    await pass(60_000);
    await claimAll();
    const late = await call(6);
    expect(await claimAll()).toMatchObject([{ id: late.id, payload: 6 }]);
  });

  test.each(['delayMs', 'runAt'])(
    'trailing, the window of a job with %s begins when it is due',
    async (option) => {
      const trailing = { ...throttle, trailing: true } as const;
      const time = option === 'delayMs' ? { delayMs: 9_000 } : { runAt: new Date(Date.now() + 9_000) };
      const first = await queue.enqueue(database.db, sync, 1, { throttle: trailing, ...time });
      await pass(9_100);
      expect(await claimAll()).toMatchObject([{ id: first.id }]);
      await pass(5_000);
      const next = await queue.enqueue(database.db, sync, 2, { throttle: trailing });
      expect(next.outcome).toBe('enqueued');
      const [due] = await database.client<{ ms: number }[]>`
      select (extract(epoch from j.run_at - f.run_at) * 1000)::float8 as ms from queue_jobs as j, queue_jobs as f
      where j.id = ${next.id} and f.id = ${first.id}`;
      expect(due?.ms).toBeCloseTo(10_000, 0);
    },
  );

  describe('in a queue with groups', () => {
    const grouped = createQueue({
      limits: limitsIn(control, { q: { groups: {} } }),
      keys: control.queueKeys,
    });
    const notedOfSecond = async (enqueue: () => Promise<unknown>): Promise<number> => {
      await enqueue();
      await database.client`delete from queue_notes`;
      await enqueue();
      return (await database.client`select from queue_notes`).length;
    };

    test('notes only what is enqueued', async () => {
      const enqueue = () => grouped.enqueue(database.db, sync, 1, { throttle, group: 'a' });
      expect(await notedOfSecond(enqueue)).toBe(0);
    });

    test('trailing, notes what is enqueued for the next window', async () => {
      const trailing = { ...throttle, trailing: true } as const;
      const enqueue = () => grouped.enqueue(database.db, sync, 1, { throttle: trailing, group: 'a' });
      expect(await notedOfSecond(enqueue)).toBe(1);
    });
  });

  test('keys whose time is over are pruned, the oldest first', async () => {
    for (const [key, perMs] of [
      ['a', 1_000],
      ['b', 2_000],
      ['c', 60_000],
    ] as const)
      await queue.enqueue(database.db, sync, 1, { throttle: { key, perMs } });
    await pass(5_000);
    const known = { tables: onThisServer(tables), keys: control.queueKeys };
    expect(await pruneKeys(database.db, known, 1)).toMatchObject({ pruned: 1 });
    const left = async () =>
      (await database.client<{ key: string }[]>`select key from queue_keys order by key`).map(
        ({ key }) => key,
      );
    expect(await left()).toEqual(['b', 'c']);
    expect(await pruneKeys(database.db, known, 10)).toMatchObject({ pruned: 1 });
    expect(await left()).toEqual(['c']);
  });
});

describe('one key by two rules', () => {
  const key = 'user-7';
  const trailing = { throttle: { key, perMs: 3_600_000, trailing: true } } as const;
  const rules = {
    debounce: { debounce: { key, delayMs: 3_600_000 } },
    replace: { replace: { key }, delayMs: 3_600_000 },
    "unique: 'waiting'": { uniqueKey: key, unique: 'waiting', delayMs: 3_600_000 },
    uniqueKey: { uniqueKey: key, delayMs: 3_600_000 },
  } as const;
  const names = Object.keys(rules) as (keyof typeof rules)[];
  const enqueue = (options: object, payload: number) =>
    queue.enqueue(database.db, sync, payload, options as typeof trailing);
  const payloads = async () => (await liveJobs()).map(({ payload }) => payload);

  describe.each(names)('a trailing throttle and %s have nothing in common', (name) => {
    const rule = rules[name];

    test('whichever comes first', async () => {
      for (const [one, two] of [
        [trailing, rule],
        [rule, trailing],
      ] as const) {
        await clearTables(database.client);
        await database.client`delete from queue_keys`;
        const first = await enqueue(one, 1);
        const second = await enqueue(two, 2);
        expect([first, second]).toMatchObject([{ outcome: 'enqueued' }, { outcome: 'enqueued' }]);
        expect(await payloads()).toEqual([1, 2]);
        // And each still finds its own.
        expect(await enqueue(one, 3)).toMatchObject({ id: first.id });
        expect(await enqueue(two, 4)).toMatchObject({ id: second.id });
      }
    });

    test('in bulk', async () => {
      const bulk = async (options: object) =>
        await queue.enqueueMany(
          database.db,
          sync,
          [1, 2].map((payload) => ({ payload, ...options })) as never,
        );
      const ids = [await bulk(trailing), await bulk(rule)].map(([job]) => job?.id);
      expect(new Set(ids).size).toBe(2);
      expect(await liveJobs()).toHaveLength(2);
    });
  });

  test.each(['throttle', 'unique: { forMs }'])('a trailing throttle and %s share it', async (name) => {
    const rule =
      name === 'throttle'
        ? { throttle: { key, perMs: 60_000 } }
        : { uniqueKey: key, unique: { forMs: 60_000 } };
    await enqueue(trailing, 1);
    expect(await enqueue(rule, 2)).toMatchObject({ id: undefined });
    expect(await payloads()).toEqual([1]);
  });

  test('no key of one is the stored form of another', async () => {
    await enqueue(trailing, 0);
    const stored = async () =>
      (
        await database.client<{ key: string }[]>`
        select waiting_key as key from queue_jobs where waiting_key is not null order by id`
      ).map((row) => row.key);
    // Whatever is stored, an app may have it as a key.
    for (let turn = 1; turn <= 4; turn++) {
      const [last = ''] = (await stored()).slice(-1);
      const answer = await enqueue({ debounce: { key: last, delayMs: 1_000 } }, turn);
      expect(answer.outcome).toBe('enqueued');
    }
    expect(await payloads()).toEqual([0, 1, 2, 3, 4]);
    expect(new Set(await stored()).size).toBe(5);
  });
});

describe('what cannot be', () => {
  const throttle = { key: 'user', perMs: 10_000 };

  test('throttle and { forMs } without their table name the line to add', async () => {
    const plain = createQueue();
    const message = "enqueue('sync'): throttle needs a table. Write `import { queueKeys } from";
    await expect(plain.enqueue(database.db, sync, 1, { throttle })).rejects.toThrow(message);
    await expect(
      plain.enqueue(database.db, sync, 1, { uniqueKey: 'k', unique: { forMs: 5 } }),
    ).rejects.toThrow('`createQueue({ keys: queueKeys })`');
    // @ts-expect-error no table
    expect(() => createQueue({ keys: { name: 'queue_keys' } })).toThrow('keys must be the table queueKeys');
    expect(await liveJobs()).toEqual([]);
  });

  test('entries of one bulk that follow different rules', async () => {
    const { db } = database;
    const debounce = { key: 'k', delayMs: 5 };
    const mixed = [
      [{ payload: 1 }, { payload: 2, debounce }],
      [
        { payload: 1, debounce },
        { payload: 2, replace: { key: 'k' } },
      ],
      [
        { payload: 1, debounce: { ...debounce, maxWaitMs: 5 } },
        { payload: 2, debounce },
      ],
    ];
    for (const entries of mixed) {
      const refused = queue.enqueueMany(db, sync, entries);
      await expect(refused).rejects.toThrow("enqueueMany('sync'): all entries must have the same debounce");
    }
    expect(await liveJobs()).toEqual([]);
  });

  test('in a batch, and for the rows of a select', async () => {
    const { db } = database;
    const debounce = { key: 'k', delayMs: 5 };
    // @ts-expect-error not in a batch
    expect(() => queue.enqueueQuery(db, sync, 1, { debounce })).toThrow('takes a plain uniqueKey');
    // @ts-expect-error not in a batch
    expect(() => queue.enqueueQuery(db, sync, 1, { uniqueKey: 'k', unique: 'waiting' })).toThrow(
      'use enqueue',
    );
    const rows = db.select({ n: sql<number>`1`.as('n') }).from(sql`generate_series(1, 2)`);
    const many = defineJob('many', { payload: unvalidated<{ n: number }>() });
    // @ts-expect-error not for rows
    await expect(queue.enqueueFrom(db, many, rows, { debounce })).rejects.toThrow(
      'is not an option of enqueueFrom',
    );
  });

  test('around sees the key of a unique one, and what became of each', async () => {
    const seen: unknown[] = [];
    const around = createQueue({
      keys: control.queueKeys,
      around: {
        enqueue: async (jobs, next) => {
          seen.push(jobs.map(({ uniqueKey }) => uniqueKey));
          seen.push(await next());
        },
      },
    });
    await around.enqueue(database.db, sync, 1, { uniqueKey: 'k', unique: { forMs: 5_000 } });
    await around.enqueue(database.db, sync, 1, { throttle });
    const answer = await around.enqueue(database.db, sync, 1, { throttle });
    expect(answer.outcome).toBe('throttled');
    expect(seen).toMatchObject([['k'], [{ outcome: 'enqueued' }], [null], [{}], [null], [answer]]);
  });
});

describe('without the table of keys', () => {
  const bare = useTestDatabase();
  const throttle = { key: 'user', perMs: 10_000 };

  test('a throttled enqueue names the line that the schema lacks, and so does check', async () => {
    const failed = queue.enqueue(bare.db, sync, 1, { throttle });
    await expect(failed).rejects.toThrow(MissingMigrationError);
    await expect(failed).rejects.toThrow("`export * from 'drizzle-queue/schema/control'`");
    const findings = await queue.check(bare.db);
    expect(findings).toContainEqual(
      expect.objectContaining({
        code: 'tables-missing',
        message: '"queue_keys" does not exist, so enqueue with throttle or unique: { forMs } fails',
      }),
    );
    expect((await queue.check(database.db)).filter(({ severity }) => severity === 'error')).toEqual([]);
  });
});

type Tx = Parameters<typeof queue.enqueue>[0];

test.each([
  ['debounce', (tx: Tx, key: string) => queue.enqueue(tx, sync, 1, { debounce: { key, delayMs: 5 } })],
  ['replace', (tx: Tx, key: string) => queue.enqueue(tx, sync, 1, { replace: { key } })],
  ['throttle', (tx: Tx, key: string) => queue.enqueue(tx, sync, 1, { throttle: { key, perMs: 60_000 } })],
])('two transactions that %s keys in opposite orders: Postgres ends one', async (_, enqueue) => {
  const [one, two] = await twoBackends(database);
  let here = 0;
  const enqueueBoth = (db: typeof one.db, first: string, second: string) =>
    db.transaction(async (tx) => {
      await enqueue(tx, first);
      here++;
      await until(() => here === 2);
      await enqueue(tx, second);
    });
  const outcomes = await Promise.allSettled([enqueueBoth(one.db, 'a', 'b'), enqueueBoth(two.db, 'b', 'a')]);
  const reasons = outcomes.flatMap((outcome) => (outcome.status === 'rejected' ? [outcome.reason] : []));
  expect(reasons).toMatchObject([{ cause: { code: '40P01' } }]);
  expect(await liveJobs()).toHaveLength(2);
});
