import { sql } from 'drizzle-orm';
import {
  createQueue,
  defineJob,
  type EnqueueResult,
  type JobDefinition,
  limitsIn,
  unvalidated,
} from 'drizzle-queue';
import * as control from 'drizzle-queue/schema/control';
import fc from 'fast-check';
import { beforeAll, expect, test } from 'vitest';
import { addControlTables } from '../support/control-tables.ts';
import { depth } from '../support/depth.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { useCanary } from './canary.ts';
import * as hostile from './hostile.ts';
import { attempt, BOTH, holds } from './refusal.ts';

const database = useTestDatabase();
beforeAll(() => addControlTables(database));
useCanary(database);
const queue = createQueue();
const anything = defineJob('anything', { payload: unvalidated<unknown>() });

/** The methods as a caller without types sees them. */
const untyped = queue as unknown as Record<string, (...given: unknown[]) => Promise<unknown>>;

const db = hostile.mostly(fc.constant('the database'));
/** Arguments are generated before there is a database. */
const given = (value: unknown) => (value === 'the database' ? database.db : value);

const job = hostile.mostly(
  fc.oneof(
    fc.constant(anything),
    hostile.name.map((kind) => defineJob(kind, { payload: unvalidated<unknown>() })),
  ),
);
const enqueueOptions = {
  delayMs: fc.nat(1_000_000),
  runAt: fc.date({ noInvalidDate: true }),
  priority: fc.integer({ min: 0, max: 9 }),
  maxAttempts: fc.integer({ min: 1, max: 10_000 }),
  queue: hostile.name,
  uniqueKey: hostile.name,
  metadata: fc.dictionary(hostile.text, hostile.value, { maxKeys: 3 }),
};
const entry = hostile.options({ ...enqueueOptions, payload: hostile.value });
const filter = {
  job,
  kind: hostile.name,
  queue: hostile.name,
  state: fc.constantFrom('due', 'running', 'completed', 'discarded'),
  cursor: fc.nat(),
  limit: fc.integer({ min: 1, max: 1_000 }),
  finishedAfter: fc.date({ noInvalidDate: true }),
  finishedBefore: fc.date({ noInvalidDate: true }),
};
const id = hostile.mostly(fc.integer({ min: 1, max: 100 }));

const calls: Readonly<Record<string, fc.Arbitrary<unknown[]>>> = {
  enqueue: fc.tuple(db, job, hostile.value, hostile.options(enqueueOptions)),
  enqueueMany: fc.tuple(db, job, hostile.mostly(fc.array(entry, { maxLength: 5 }))),
  find: fc.oneof(fc.tuple(db, id), fc.tuple(db, job, id)),
  list: fc.tuple(db, hostile.options(filter)),
  cancel: fc.tuple(
    db,
    id,
    fc.oneof(hostile.value, hostile.options({ reason: hostile.text, force: fc.boolean() })),
  ),
  redrive: fc.tuple(db, hostile.mostly(fc.oneof(id, hostile.options(filter)))),
  enqueueQuery: fc.tuple(db, job, hostile.value, hostile.options(enqueueOptions)),
  pause: fc.tuple(db, hostile.mostly(hostile.text)),
  resume: fc.tuple(db, hostile.mostly(hostile.text)),
  paused: fc.tuple(db),
  check: fc.tuple(db),
};

test.each(Object.entries(calls))(
  '%s answers, or says what is wrong',
  { timeout: 240_000 },
  async (method, args) => {
    const seen = new Set<string>();
    await holds(
      fc.asyncProperty(args, async (args) => {
        seen.add(await attempt(() => untyped[method]?.apply(queue, args.map(given))));
      }),
      // A check asks dozens of questions.
      method === 'check' ? depth(100, 400) : undefined,
    );
    expect([...seen].sort()).toEqual(BOTH);
  },
);

const milliseconds = fc.integer({ min: 1, max: 1_000_000 });
const rules: Readonly<Record<string, Readonly<Record<string, fc.Arbitrary<unknown>>>>> = {
  debounce: {
    debounce: hostile.options({ key: hostile.name, delayMs: fc.constant(5), maxWaitMs: milliseconds }),
  },
  throttle: { throttle: hostile.options({ key: hostile.name, perMs: milliseconds, trailing: fc.boolean() }) },
  replace: { replace: hostile.options({ key: hostile.name, runAt: fc.constant('keep') }) },
  unique: {
    uniqueKey: hostile.name,
    unique: fc.oneof(fc.constantFrom('live', 'waiting'), hostile.options({ forMs: milliseconds })),
  },
  group: { group: hostile.name, cost: fc.integer({ min: 1, max: 10_000 }) },
};

test.each(Object.entries(rules))(
  'enqueue and enqueueMany with %s answer, or say what is wrong',
  { timeout: 240_000 },
  async (_, rule) => {
    const limits = limitsIn(control, { q: { groups: {} } });
    const full = createQueue({ keys: control.queueKeys, limits }) as unknown as typeof untyped;
    const inGroup = defineJob('in-group', { payload: unvalidated<unknown>(), queue: 'q' });
    const {
      queue: _queue,
      uniqueKey: _uniqueKey,
      runAt: _runAt,
      delayMs: _delayMs,
      ...common
    } = enqueueOptions;
    const seen = new Set<string>();
    const options = hostile.options({ ...common, ...rule });
    await holds(
      fc.asyncProperty(
        options,
        fc.array(hostile.options(rule), { maxLength: 3 }),
        async (options, entries) => {
          seen.add(await attempt(() => full.enqueue?.call(full, database.db, inGroup, 1, options)));
          await attempt(() => full.enqueueMany?.call(full, database.db, inGroup, entries));
        },
      ),
      200,
    );
    expect([...seen].sort()).toEqual(BOTH);
  },
);

test('enqueueFrom answers, or says what is wrong', { timeout: 240_000 }, async () => {
  const selects = fc.dictionary(hostile.text, fc.integer(), { minKeys: 1, maxKeys: 4 });
  const row = (value: unknown) => () => sql`${value}`;
  const given = hostile.options({
    ...enqueueOptions,
    runAt: fc.oneof(fc.date({ noInvalidDate: true }), hostile.text.map(row)),
    priority: fc.oneof(fc.integer({ min: 0, max: 9 }), hostile.text.map(row)),
    uniqueKey: fc.oneof(
      hostile.text.map(row),
      fc.constant(() => 'not SQL'),
    ),
  });
  const seen = new Set<string>();
  await holds(
    fc.asyncProperty(
      hostile.mostly(selects),
      hostile.mostly(fc.constant('a select')),
      given,
      async (fields, select, options) => {
        const outcome = await attempt(() => {
          const columns = Object.entries(Object(fields)).map(([key, n], index) => [
            key,
            sql`${Number.isInteger(n) ? n : 0}::int8`.as(`c${index}`),
          ]);
          const rows = database.db.select(Object.fromEntries(columns)).from(sql`generate_series(1, 2)`);
          return untyped.enqueueFrom?.call(
            queue,
            database.db,
            anything,
            select === 'a select' ? rows : select,
            options,
          );
        });
        seen.add(outcome);
      },
    ),
  );
  expect([...seen].sort()).toEqual(BOTH);
});

test('a queue of any name is paused and resumed, and no other', { timeout: 240_000 }, async () => {
  await database.client`truncate queue_pauses`;
  await queue.pause(database.db, 'another');
  await holds(
    fc.asyncProperty(hostile.name, async (name) => {
      const names = async () => (await queue.paused(database.db)).map((paused) => paused.queue);
      expect(await queue.pause(database.db, name)).toBe(true);
      expect((await names()).sort()).toEqual([name, 'another'].sort());
      expect(await queue.pause(database.db, name)).toBe(false);
      expect(await queue.resume(database.db, name)).toBe(true);
      expect(await names()).toEqual(['another']);
    }),
    150,
  );
});

test('a running job is cancelled with any reason, or it is said what is wrong with it', {
  timeout: 240_000,
}, async () => {
  const seen = new Set<string>();
  const options = hostile.options({ reason: hostile.text, force: fc.boolean() });
  await holds(
    fc.asyncProperty(options, async (options) => {
      await database.client`delete from queue_jobs`;
      await database.client`delete from queue_results`;
      const { id } = await queue.enqueue(database.db, anything, 'x');
      await database.client`update queue_jobs set worker_id = 1, fence = 1, attempt = 1, claimed_at = now()`;
      const outcome = await attempt(() => untyped.cancel?.call(queue, database.db, id, options));
      seen.add(outcome);
      const [row] = await database.client`select coalesce(cancel_reason, '') as reason from queue_jobs`;
      const { reason, force } = Object(options);
      if (outcome === 'refused') expect(row).toEqual({ reason: '' });
      else if (force === true) expect(row).toBeUndefined();
      // Up to 2,000 characters, and what is no character is replaced.
      else if (typeof reason === 'string' && isKept(reason)) expect(row).toEqual({ reason });
    }),
    depth(60, 150),
  );
  expect([...seen].sort()).toEqual(BOTH);
});

test('what is accepted is stored byte for byte, and found again', { timeout: 240_000 }, async () => {
  const entries = fc.array(
    fc.record({
      payload: fc.oneof(hostile.name, fc.dictionary(hostile.name, hostile.name, { maxKeys: 3 })),
      uniqueKey: fc.option(hostile.name, { nil: undefined }),
      queue: hostile.name,
      metadata: fc.dictionary(hostile.name, hostile.name, { maxKeys: 3 }),
    }),
    { minLength: 1, maxLength: 4 },
  );
  await holds(
    fc.asyncProperty(hostile.name, entries, async (kind, entries) => {
      await database.client`delete from queue_jobs`;
      await database.client`delete from queue_results`;
      const job = defineJob(kind, { payload: unvalidated<unknown>() });
      const [first, ...others] = entries;
      if (first === undefined) return;
      const { payload, ...options } = first;
      const answers = [
        await queue.enqueue(database.db, job, payload, options),
        ...(await queue.enqueueMany(database.db, job, others)),
      ];
      const seen = new Set<number>();
      for (const [index, { id, duplicate }] of answers.entries()) {
        const given = entries[index];
        if (given === undefined || duplicate) continue;
        seen.add(id);
        expect(await rowOf(id)).toEqual({
          kind: hex(kind),
          queue: hex(given.queue),
          unique_key: given.uniqueKey === undefined ? null : hex(given.uniqueKey),
          payload: given.payload,
          metadata: given.metadata,
        });
        expect(await queue.find(database.db, job, id)).toMatchObject({
          kind,
          ...given,
          uniqueKey: given.uniqueKey ?? null,
        });
        const { jobs } = await queue.list(database.db, { kind, queue: given.queue, limit: 1_000 });
        expect(jobs.map(({ id }) => id)).toContain(id);
      }
      const [{ n } = { n: -1 }] = await database.client<
        { n: number }[]
      >`select count(*)::int as n from queue_jobs`;
      expect(n).toBe(seen.size);
      await cancelAll(job, answers, kind);
    }),
    depth(60, 200),
  );
});

/** Whether a reason is kept to the letter. */
function isKept(reason: string): boolean {
  return reason.length <= 2_000 && !reason.includes('\0') && Buffer.from(reason).toString() === reason;
}

/** Ends them with a hostile reason, which is stored as it is. */
async function cancelAll(
  job: JobDefinition,
  answers: readonly EnqueueResult[],
  reason: string,
): Promise<void> {
  for (const { id, duplicate } of answers) {
    if (duplicate) continue;
    expect(await queue.cancel(database.db, id, reason)).toEqual({ cancelled: true });
    const record = await queue.find(database.db, job, id);
    expect(record?.errors.map(({ message }) => message)).toEqual([reason]);
  }
}

/** What stands in the table, read without the library; the names as the bytes that they are. */
async function rowOf(id: number): Promise<unknown> {
  const [row] = await database.client`
    select encode(convert_to(kind, 'utf8'), 'hex') as kind, encode(convert_to(queue, 'utf8'), 'hex') as queue,
      encode(convert_to(unique_key, 'utf8'), 'hex') as unique_key, payload, metadata
    from queue_jobs where id = ${id}`;
  return row && { ...row };
}

const hex = (text: string) => Buffer.from(text).toString('hex');
