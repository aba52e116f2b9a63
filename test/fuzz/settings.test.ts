import { boolean, integer, jsonb, pgSchema, serial, text, timestamp } from 'drizzle-orm/pg-core';
import * as library from 'drizzle-queue';
import { createQueue, createWorker, defineJob, drain, handle, runNext, unvalidated } from 'drizzle-queue';
import * as schema from 'drizzle-queue/schema';
import { createQueueTables } from 'drizzle-queue/schema';
import { queueKeys } from 'drizzle-queue/schema/control';
import fc from 'fast-check';
import { describe, expect, test, vi } from 'vitest';
import { useTestDatabase } from '../support/test-database.ts';
import { useCanary } from './canary.ts';
import * as hostile from './hostile.ts';
import { attempt, BOTH, holds } from './refusal.ts';

const database = useTestDatabase();
useCanary(database);
const queue = createQueue();
const work = defineJob('work');
const handlers = [handle(work, () => {})];

/** The functions as a caller without types sees them. */
const untyped = { ...library, ...schema } as unknown as Record<string, (...given: unknown[]) => unknown>;

const milliseconds = fc.integer({ min: 0, max: 100_000 });
const anySchema = fc.constant(unvalidated<unknown>());
const jobOptions = {
  payload: anySchema,
  output: anySchema,
  queue: hostile.name,
  priority: fc.integer({ min: 0, max: 9 }),
  maxAttempts: fc.integer({ min: 1, max: 20 }),
  timeoutMs: milliseconds,
  backoff: fc.constant(() => 1),
  keepResult: fc.constantFrom(true, 'outcome', false),
  group: fc.constant(() => 'a'),
  cost: fc.constant(() => 1),
};
const runOptions = {
  queue: fc.constant(queue),
  handlers: fc.constant(handlers),
};
const workerOptions = {
  ...runOptions,
  queues: fc.dictionary(
    fc.oneof({ weight: 4, arbitrary: hostile.name }, { weight: 1, arbitrary: hostile.text }),
    hostile.options({
      concurrency: fc.integer({ min: 1, max: 20 }),
      aging: hostile.options({ afterMs: fc.integer({ min: 100, max: 100_000 }) }),
    }),
    { maxKeys: 3 },
  ),
  jobs: fc.constant([work]),
  listen: fc.boolean(),
  pollIntervalMs: fc.integer({ min: 5, max: 60_000 }),
  shutdownTimeoutMs: milliseconds,
  retentionMs: milliseconds,
  silentMs: fc.integer({ min: 15_000, max: 100_000 }),
  frozenMs: fc.integer({ min: 15_000, max: 100_000 }),
  reconnectMs: fc.integer({ min: 1_000, max: 60_000 }),
  name: hostile.name,
};

const columnTypes = {
  text: (name: string) => text(name),
  integer: (name: string) => integer(name).notNull(),
  boolean: (name: string) => boolean(name).default(true),
  jsonb: (name: string) => jsonb(name),
  timestamp: (name: string) => timestamp(name),
  serial: (name: string) => serial(name),
};

/** Columns of an app's own, by any key and of any name: of types that can be used, and of some that cannot. */
const columns = fc.dictionary(
  hostile.text,
  hostile.mostly(
    fc
      .tuple(hostile.text, fc.constantFrom('text', 'integer', 'boolean', 'jsonb', 'timestamp', 'serial'))
      .map(([name, type]) => columnTypes[type](name)),
  ),
  { maxKeys: 3 },
);

const calls: Readonly<Record<string, fc.Arbitrary<unknown[]>>> = {
  defineJob: fc.tuple(hostile.mostly(hostile.text), hostile.options(jobOptions)),
  createQueue: fc.tuple(
    hostile.options({
      tables: fc.constant(queue.tables),
      wakeUps: fc.boolean(),
      maxPayloadBytes: fc.integer({ min: 1, max: 1_000_000 }),
      keys: fc.constant(queueKeys),
    }),
  ),
  createQueueTables: fc.tuple(
    hostile.options({
      prefix: fc.oneof(fc.constant('mail_'), hostile.text),
      schema: fc.constant(pgSchema('work')),
      columns,
    }),
  ),
  createWorker: fc.tuple(fc.constant({ execute: () => undefined }), hostile.options(workerOptions)),
  handle: fc.tuple(hostile.mostly(fc.constant(work)), hostile.mostly(fc.constant(() => {}))),
  handleBatch: fc.tuple(
    hostile.mostly(fc.constant(work)),
    hostile.options({
      maxSize: fc.integer({ min: 1, max: 1_000 }),
      maxWaitMs: fc.integer({ min: 0, max: 60_000 }),
    }),
    hostile.mostly(fc.constant(() => {})),
  ),
  snooze: fc.tuple(hostile.mostly(milliseconds)),
  cancel: fc.tuple(hostile.value),
  fail: fc.tuple(hostile.value),
  fixedBackoff: fc.tuple(hostile.mostly(milliseconds)),
  exponentialBackoff: fc.tuple(
    hostile.options({
      initialMs: milliseconds,
      maxMs: milliseconds,
      factor: fc.integer({ min: 1, max: 5 }),
      random: fc.constant(() => 0.5),
    }),
  ),
};
/** Whatever is no text is made one, and anything can be thrown. */
const acceptsAll = new Set(['cancel', 'fail']);

test.each(Object.entries(calls))(
  '%s answers, or says what is wrong',
  { timeout: 240_000 },
  async (name, args) => {
    // A worker without a handler's queue warns.
    const warn = vi.spyOn(process, 'emitWarning').mockImplementation(() => {});
    const seen = new Set<string>();
    await holds(
      fc.asyncProperty(args, async (args) => {
        seen.add(await attempt(() => untyped[name]?.(...args)));
      }),
    );
    warn.mockRestore();
    expect([...seen].sort()).toEqual(acceptsAll.has(name) ? ['accepted'] : BOTH);
  },
);

describe('functions that run jobs say what is wrong', () => {
  const db = hostile.mostly(fc.constant('the database'));
  const given = (value: unknown) => (value === 'the database' ? database.db : value);

  test('drain', { timeout: 240_000 }, async () => {
    const options = hostile.options({ ...workerOptions, deadlineMs: fc.integer({ min: 1, max: 50 }) });
    vi.spyOn(process, 'emitWarning').mockImplementation(() => {});
    const seen = new Set<string>();
    await holds(
      fc.asyncProperty(db, options, async (db, options) => {
        seen.add(await attempt(() => untyped.drain?.(given(db), options)));
      }),
      // One of 45 is accepted, so among fewer there would now and then be none.
      1_000,
    );
    vi.restoreAllMocks();
    expect([...seen].sort()).toEqual(BOTH);
    expect(await drain(database.db, { queue, handlers, deadlineMs: 10_000 })).toMatchObject({ empty: true });
  });

  test('runNext', { timeout: 240_000 }, async () => {
    const options = hostile.options({ ...runOptions, queues: fc.array(hostile.text, { maxLength: 3 }) });
    const seen = new Set<string>();
    await holds(
      fc.asyncProperty(db, options, async (db, options) => {
        seen.add(await attempt(() => untyped.runNext?.(given(db), options)));
      }),
    );
    expect([...seen].sort()).toEqual(BOTH);
    expect(await runNext(database.db, { queue, handlers })).toBeUndefined();
  });

  test('a worker without a database', () => {
    for (const db of [undefined, null, 5, 'postgres://', {}, { execute: 5 }]) {
      expect(() => createWorker(db as never, { queue, handlers })).toThrow(
        'drizzle-queue needs a Drizzle database or transaction',
      );
    }
  });
});

test('tables in a Postgres schema of any name are only looked for there', { timeout: 240_000 }, async () => {
  await holds(
    fc.asyncProperty(hostile.text, async (name) => {
      const outcome = await attempt(async () => {
        const tables = createQueueTables({ schema: pgSchema(name) });
        await createQueue({ tables }).enqueue(database.db, work);
      });
      expect(outcome).toBe('refused');
    }),
  );
});

test('columns of any name are only looked for under that name', { timeout: 240_000 }, async () => {
  await holds(
    fc.asyncProperty(hostile.name, hostile.name, async (key, name) => {
      const outcome = await attempt(async () => {
        const tables = createQueueTables({ columns: { [key]: text(name) } as Record<never, never> });
        await createQueue({ tables }).enqueue(database.db, work, undefined, { [key]: name });
      });
      expect(outcome).toBe('refused');
    }),
    200,
  );
});

test('a worker serves queues and kinds of any name', { timeout: 240_000 }, async () => {
  const names = fc.sample(hostile.name, { numRuns: 60, seed: 7 });
  const kinds = [...new Set(names)];
  const ran: string[] = [];
  const jobs = kinds.map((kind, index) => defineJob(kind, { queue: kinds.at(index / 2) ?? kind }));
  for (const job of jobs)
    await queue.enqueue(database.db, job, undefined, { metadata: { [job.kind]: job.queue } });
  const drained = await drain(database.db, {
    queue,
    name: names[0],
    handlers: jobs.map((job) => handle(job, ({ job: { kind } }) => void ran.push(kind))),
    deadlineMs: 50_000,
  });
  expect(drained).toMatchObject({ completed: kinds.length, empty: true });
  expect(ran.sort()).toEqual([...kinds].sort());
  const results = await database.client<{ kind: string; queue: string; metadata: unknown }[]>`
    select kind, queue, metadata from queue_results`;
  expect(results.map(({ kind }) => kind).sort()).toEqual([...kinds].sort());
  for (const { kind, queue, metadata } of results) expect(metadata).toEqual({ [kind]: queue });
});
