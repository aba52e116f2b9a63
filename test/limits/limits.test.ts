import {
  createQueue,
  createWorker,
  defineJob,
  handle,
  limitsIn,
  MissingMigrationError,
  QueueError,
  runNext,
} from 'drizzle-queue';
import * as control from 'drizzle-queue/schema/control';
import { beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { registerWorker } from '../../src/core/queries/presence/register-worker.ts';
import { takeLease } from '../../src/features/limits/queries/take-lease.ts';
import { limitTables } from '../queries/support/jobs.ts';
import { addControlTables } from '../support/control-tables.ts';
import { emptyTables } from '../support/empty-tables.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { nextEvent } from '../worker/next-event.ts';

const database = useTestDatabase();
const queue = createQueue({
  limits: limitsIn(control, {
    exports: {
      concurrency: 50,
      kinds: { big: { concurrency: 5 }, small: {} },
      groups: { concurrency: 2, rate: { limit: 10, perMs: 1_000 } },
    },
    ledger: { groups: { serial: 'end' } },
    rated: { kinds: { k: { rate: { limit: 2, perMs: 500 } } } },
    plain: { kinds: { k: {} } },
  }),
});
const { limits } = queue;

beforeAll(() => addControlTables(database));
beforeEach(async () => {
  await emptyTables(database.client, 'queue_jobs', 'queue_workers', 'queue_limits', 'queue_usage');
});

test('a rate in fractions of a millisecond is one in whole ones, and jobs start', async () => {
  const rate = { limit: 5, perMs: 1_000 / 7 };
  const byQueue = { thirds: { rate, kinds: { k: { rate } }, groups: { rate } } };
  const fractional = createQueue({ limits: limitsIn(control, byQueue) });
  const rounded = { rate: { limit: 5, perMs: 143 } };
  expect(await fractional.limits.list(database.db, { queue: 'thirds' })).toMatchObject({
    limits: [
      { kind: undefined, group: undefined, declared: rounded },
      { kind: 'k', declared: rounded },
      { group: '*', declared: rounded },
    ],
  });
  const job = defineJob('k', { queue: 'thirds' });
  const handlers = [handle(job, async () => {})];
  const worker = createWorker(database.db, {
    queue: fractional,
    handlers,
    queues: { thirds: {} },
    log: false,
  });
  onTestFinished(() => worker.stop());
  await worker.start();
  const { id } = await fractional.enqueue(database.db, job);
  expect(await fractional.waitFor(database.db, job, id, { timeoutMs: 60_000 })).toMatchObject({
    state: 'completed',
  });
});

describe('set', () => {
  test('goes before what is declared until it is null again', async () => {
    const name = { queue: 'exports', kind: 'big' } as const;
    expect(await limits.set(database.db, name, { concurrency: 9 })).toEqual({
      queue: 'exports',
      kind: 'big',
      group: undefined,
      declared: { concurrency: 5 },
      override: { concurrency: 9 },
      setAt: expect.any(Date),
      slots: 0,
    });
    const rated = { queue: 'rated', kind: 'k' } as const;
    expect(await limits.set(database.db, rated, { rate: { limit: 3, perMs: 500 } })).toMatchObject({
      override: { rate: { limit: 3, perMs: 500 } },
    });
    // The database takes whole milliseconds alone.
    expect(await limits.set(database.db, rated, { rate: { limit: 3, perMs: 1_000 / 7 } })).toMatchObject({
      override: { rate: { limit: 3, perMs: 143 } },
    });
    expect(await limits.set(database.db, rated, null)).toMatchObject({ override: undefined });
    expect(await limits.set(database.db, name, null)).toMatchObject({
      override: undefined,
      setAt: undefined,
    });
    expect(await limits.set(database.db, name, null)).toMatchObject({ override: undefined });
    expect(await database.client`select from queue_limits`).toHaveLength(0);
  });

  test('commits with its transaction, or not at all', async () => {
    await database.db
      .transaction(async (tx) => {
        await limits.set(tx, { queue: 'exports', group: 'acme' }, { concurrency: 4, weight: 3 });
        expect(await limits.list(tx, { queue: 'exports' })).toMatchObject({
          limits: [{}, {}, {}, {}, { group: 'acme', override: { concurrency: 4, weight: 3 } }],
        });
        throw new Error('no');
      })
      .catch(() => undefined);
    expect((await limits.list(database.db, { queue: 'exports' })).limits).toHaveLength(4);
  });

  test('leaves alone what workers have of it', async () => {
    const workerId = await registerWorker(database.db, limitTables, { name: 'w', queues: [] });
    const wish = {
      queue: 'exports',
      kind: '',
      workerId,
      declared: 50,
      running: 0,
      want: 7,
      wants: 7,
      era: 0,
    };
    await takeLease(database.db, limitTables, wish);
    expect(await limits.set(database.db, { queue: 'exports' }, { concurrency: 3 })).toMatchObject({
      slots: 7,
    });
    expect(await limits.set(database.db, { queue: 'exports' }, null)).toMatchObject({ slots: 7 });
    await emptyTables(database.client, 'queue_workers');
    expect(await limits.set(database.db, { queue: 'exports' }, null)).toMatchObject({ slots: 0 });
  });

  const wrong: [object, object | null, string][] = [
    [
      { queue: 'mail' },
      { concurrency: 1 },
      "the queue 'mail' has no declared limits, so workers would ignore this one. Declare it, limitsIn(…, { mail: {} })",
    ],
    [{ queue: 'my mail' }, null, "limitsIn(…, { 'my mail': {} })"],
    [{ queue: '' }, null, 'limits.set: queue must be a string that is not empty'],
    [{}, null, 'limits.set: queue must be a string'],
    [
      { queue: 'exports', kind: 'other' },
      { concurrency: 1 },
      "the kind 'other' has no declared limits, so workers would ignore this one. Declare it, limitsIn(…, { exports: { kinds: ['other'] } })",
    ],
    [
      { queue: 'exports', kind: 'constructor' },
      { concurrency: 1 },
      "the kind 'constructor' has no declared limits",
    ],
    [{ queue: 'exports', kind: 7 }, { concurrency: 1 }, 'limits.set: kind must be a string'],
    [
      { queue: 'exports', group: '' },
      { concurrency: 1 },
      'limits.set: group must be a string that is not empty',
    ],
    [{ queue: 'exports', kind: 'big', group: 'a' }, { concurrency: 1 }, 'kind and group cannot be combined'],
    [
      { queue: 'plain', group: 'a' },
      { concurrency: 1 },
      "the queue 'plain' has no groups: declare them, limitsIn(…, { plain: { groups: 'fair' } })",
    ],
    [
      { queue: 'exports' },
      { concurrency: 0 },
      'limits.set: the limit: concurrency must be a whole number from 1 to 1000000, got 0',
    ],
    [
      { queue: 'exports' },
      { concurency: 1 },
      "limits.set: the limit: unknown option 'concurency'; did you mean concurrency?",
    ],
    [
      { queue: 'exports' },
      { rate: { limit: 1, perMs: 1 } },
      'rate.perMs must be a number of milliseconds from 100',
    ],
    [{ queue: 'exports' }, {}, 'sets nothing; pass null to remove what was set before'],
    [{ queue: 'exports' }, undefined as never, 'limits.set: the limit must be an object'],
    [{ queue: 'exports' }, { weight: 2 }, 'weight applies to groups'],
    [{ queue: 'exports', group: 'a' }, { weight: 0 }, 'weight must be a whole number from 1 to 1000'],
    [{ queue: 'ledger', group: 'a' }, { concurrency: 2 }, "its groups are serial ('end'), one at a time"],
    [
      { queue: 'plain' },
      { rate: { limit: 1, perMs: 1_000 } },
      'rate has no effect, because the code declares limits here without rate. Declare one, limitsIn(…, { plain: { rate: … } })',
    ],
    [
      { queue: 'plain' },
      { concurrency: 3 },
      'concurrency has no effect, because the code declares limits here without concurrency. Declare one, limitsIn(…, { plain: { concurrency: … } })',
    ],
    [
      { queue: 'exports', kind: 'big' },
      { rate: { limit: 1, perMs: 1_000 } },
      'Declare one, limitsIn(…, { exports: { kinds: { big: { rate: … } } } })',
    ],
    [{ queue: 'ledger' }, { concurrency: 3 }, 'Declare one, limitsIn(…, { ledger: { concurrency: … } })'],
  ];
  test.each(wrong)('refuses %j as %j', async (name, override, message) => {
    await expect(limits.set(database.db, name as never, override as never)).rejects.toThrow(message);
    expect(await database.client`select from queue_limits`).toHaveLength(0);
  });

  test.each(['groups', 'kinds'])('limitsIn refuses %s: null', (setting) => {
    expect(() => limitsIn(control, { mail: { [setting]: null } as never })).toThrow(
      new RegExp(`^limitsIn: 'mail': ${setting} must be`),
    );
  });

  test('says which line the schema lacks when there is no table', async () => {
    const [{ client, db } = database] = await database.connect();
    await client`set search_path = pg_catalog`;
    const set = limits.set(db, { queue: 'exports' }, { concurrency: 1 });
    await expect(set).rejects.toThrow(MissingMigrationError);
    await expect(set).rejects.toThrow("export * from 'drizzle-queue/schema/control'");
  });
});

describe('list', () => {
  test('has what is declared and what was set, and single groups a page at a time', async () => {
    await limits.set(database.db, { queue: 'exports', kind: 'small' }, { concurrency: 1 });
    await limits.set(database.db, { queue: 'exports', group: '*' }, { weight: 2 });
    for (const group of ['c', 'a', 'b'])
      await limits.set(database.db, { queue: 'exports', group }, { concurrency: 1 });
    const first = await limits.list(database.db, { queue: 'exports', limit: 2 });
    expect(
      first.limits.map(({ kind, group, declared, override }) => ({ kind, group, declared, override })),
    ).toEqual([
      { declared: { concurrency: 50 } },
      { kind: 'big', declared: { concurrency: 5 } },
      { kind: 'small', declared: {}, override: { concurrency: 1 } },
      {
        group: '*',
        declared: { concurrency: 2, rate: { limit: 10, perMs: 1_000 } },
        override: { weight: 2 },
      },
      {
        group: 'a',
        declared: { concurrency: 2, rate: { limit: 10, perMs: 1_000 } },
        override: { concurrency: 1 },
      },
      {
        group: 'b',
        declared: { concurrency: 2, rate: { limit: 10, perMs: 1_000 } },
        override: { concurrency: 1 },
      },
    ]);
    expect(first.nextCursor).toBe('b');
    const second = await limits.list(database.db, { queue: 'exports', limit: 2, cursor: first.nextCursor });
    expect(second.limits.map(({ group }) => group)).toEqual(['c']);
    expect(second.nextCursor).toBe(undefined);
    expect((await limits.list(database.db, { queue: 'ledger' })).limits).toMatchObject([
      { group: undefined },
      { group: '*', declared: { serial: 'end' } },
    ]);
    await expect(limits.list(database.db, { queue: 'mail' })).rejects.toThrow(
      "limits.list: the queue 'mail' has no declared limits",
    );
  });
});

test('unblock refuses what names no group, before anything is sent', async () => {
  for (const name of [{ queue: 'ledger' }, { queue: 'exports', kind: 'big' }]) {
    await expect(limits.unblock(database.db, name as never)).rejects.toThrow(
      'limits.unblock: group must be a string that is not empty, got undefined',
    );
  }
});

test('runNext refuses queues with limits, before it claims anything', async () => {
  const job = defineJob('k', { queue: 'plain' });
  await queue.enqueue(database.db, job);
  const run = runNext(database.db, { queue, handlers: [handle(job, () => undefined)] });
  await expect(run).rejects.toThrow(QueueError);
  await expect(run).rejects.toThrow("runNext: the queue 'plain' has limits, which runNext cannot keep");
  expect(await database.client`select from queue_jobs where attempt = 0`).toHaveLength(1);
});

describe('without the tables', () => {
  test('check says so, and a worker does not start', async () => {
    await database.client`alter table queue_usage rename to usage_away`;
    onTestFinished(async () => {
      await database.client`alter table usage_away rename to queue_usage`;
    });
    expect(await queue.check(database.db)).toContainEqual(
      expect.objectContaining({
        code: 'tables-missing',
        message: expect.stringContaining('"queue_usage" does not exist'),
      }),
    );
    const job = defineJob('k', { queue: 'plain' });
    const worker = createWorker(database.db, { queue, handlers: [handle(job, () => undefined)] });
    await expect(worker.start()).rejects.toThrow('The table "queue_usage" does not exist');
    // One of other queues touches none of them.
    for (const table of ['queue_limits', 'queue_groups', 'queue_holds', 'queue_notes']) {
      await database.client.unsafe(`alter table ${table} rename to ${table}_away`);
      onTestFinished(async () => {
        await database.client.unsafe(`alter table ${table}_away rename to ${table}`);
      });
    }
    const other = defineJob('other');
    const others = createWorker(database.db, { queue, handlers: [handle(other, () => undefined)] });
    onTestFinished(() => others.stop());
    const completed = nextEvent(others, 'completed');
    await others.start();
    await queue.enqueue(database.db, other);
    await completed;
  });
});
