import {
  createQueue,
  createWorker,
  defineJob,
  drain,
  handle,
  type JobDefinition,
  runNext,
  UnknownKindError,
  unvalidated,
} from 'drizzle-queue';
import pg from 'pg';
import postgres from 'postgres';
import { describe, expect, test } from 'vitest';
import { useTestDatabase } from '../support/test-database.ts';
import { untouched } from './support/executors.ts';

const database = useTestDatabase({ max: 1 });
const queue = createQueue();
const index = defineJob('index', { payload: unvalidated<number>() });

/** A select that is good enough for whatever does not reach the database. */
const select = () => database.db.select().from(queue.tables.queueWorkers);

type Refused = [what: string, options: Record<string, unknown>, error: typeof Error, message: RegExp];

/** What every way of enqueueing refuses alike. */
const refused: Refused[] = [
  ['a negative delayMs', { delayMs: -1 }, RangeError, /delayMs must be .* from 0 .* got -1/],
  ['NaN as delayMs', { delayMs: Number.NaN }, RangeError, /delayMs .* got NaN/],
  ['an endless delayMs', { delayMs: Number.POSITIVE_INFINITY }, RangeError, /delayMs .* got Infinity/],
  ['a delayMs of two centuries', { delayMs: 200 * 366 * 86_400_000 }, RangeError, /delayMs/],
  ['a text as delayMs', { delayMs: '1000' }, RangeError, /delayMs .* got '1000'/],
  ['an invalid runAt', { runAt: new Date(Number.NaN) }, RangeError, /runAt must be a valid Date/],
  ['a runAt in the year 10000', { runAt: new Date('+010000-01-01T00:00:00Z') }, RangeError, /runAt .* 9999/],
  ['a runAt before the year 1', { runAt: new Date('0000-12-31T00:00:00Z') }, RangeError, /runAt/],
  ['a text as runAt', { runAt: '2024-01-01' }, RangeError, /runAt .* got '2024-01-01'/],
  [
    'delayMs together with runAt',
    { delayMs: 1, runAt: new Date() },
    TypeError,
    /delayMs and runAt cannot be combined/,
  ],
  ['priority 10', { priority: 10 }, RangeError, /priority must be a whole number from 0 to 9, got 10/],
  ['priority -1', { priority: -1 }, RangeError, /priority .* got -1/],
  ['priority 1.5', { priority: 1.5 }, RangeError, /priority .* got 1.5/],
  ['a text as priority', { priority: '5' }, RangeError, /priority .* got '5'/],
  ['maxAttempts 0', { maxAttempts: 0 }, RangeError, /maxAttempts must be a whole number from 1/],
  ['maxAttempts 10,001', { maxAttempts: 10_001 }, RangeError, /maxAttempts .* got 10001/],
  ['an empty queue', { queue: '' }, TypeError, /queue must be a string that is not empty/],
  ['NUL in the queue', { queue: 'a\0' }, TypeError, /queue must not contain a NUL/],
  [
    'a queue of 201 bytes',
    { queue: `${'ü'.repeat(100)}x` },
    TypeError,
    /queue must be at most 200 bytes .* got 201/,
  ],
  ['a number as queue', { queue: 5 }, TypeError, /queue .* got 5/],
  ['metadata that is an array', { metadata: [1] }, TypeError, /metadata must be an object/],
  ['metadata that is null', { metadata: null }, TypeError, /metadata must be an object/],
  ['metadata that is a text', { metadata: '{}' }, TypeError, /metadata must be an object/],
  ['a misspelt option', { delay: 1_000 }, TypeError, /unknown option 'delay'; did you mean delayMs\?/],
  [
    'an option of something else',
    { cron: '* * * * *' },
    TypeError,
    /unknown option 'cron'; valid options: .*priority/,
  ],
];

/** Which enqueueFrom takes as an expression only. */
const refusedKeys: Refused[] = [
  ['an empty uniqueKey', { uniqueKey: '' }, TypeError, /uniqueKey must be a string that is not empty/],
  ['NUL in the uniqueKey', { uniqueKey: 'a\0' }, TypeError, /uniqueKey must not contain a NUL/],
  ['a uniqueKey of 2,001 bytes', { uniqueKey: 'x'.repeat(2_001) }, TypeError, /uniqueKey .* 2000 bytes/],
  ['a number as uniqueKey', { uniqueKey: 7 }, TypeError, /uniqueKey .* got 7/],
  ['half a surrogate pair in the uniqueKey', { uniqueKey: '\ud83d' }, TypeError, /uniqueKey .*surrogate/],
  ['half a surrogate pair in the queue', { queue: '\ud83d' }, TypeError, /queue .*surrogate/],
];

async function expectRefused(attempt: Promise<unknown>, [, , error, message]: Refused): Promise<void> {
  await expect(attempt).rejects.toBeInstanceOf(error);
  await expect(attempt).rejects.toThrow(message);
  // Which job the caller meant.
  await expect(attempt).rejects.toThrow(/'index'/);
}

describe('refused with a clear error, and nothing is sent', () => {
  test.each([...refused, ...refusedKeys])('enqueue: %s', async (...given) => {
    await expectRefused(queue.enqueue(untouched(), index, 1, given[1]), given);
  });

  test.each([...refused, ...refusedKeys])('enqueueMany: %s', async (...given) => {
    const entries = [{ payload: 1 }, { payload: 2, ...given[1] }];
    await expectRefused(queue.enqueueMany(untouched(), index, entries), given);
  });

  test.each(refused)('enqueueFrom: %s', async (...given) => {
    const plain = defineJob('index');
    await expectRefused(queue.enqueueFrom(untouched(), plain, select(), given[1]), given);
  });
});

describe('a kind’s name instead of its definition', () => {
  const name = 'index' as unknown as JobDefinition;

  test.each([
    ['enqueue', () => queue.enqueue(untouched(), name)],
    ['enqueueMany', () => queue.enqueueMany(untouched(), name, [{ payload: undefined }])],
    ['enqueueFrom', () => queue.enqueueFrom(untouched(), name, select())],
    ['find', () => queue.find(untouched(), name, 1)],
    ['list', () => queue.list(untouched(), { job: name })],
  ])('%s', async (caller, call) => {
    await expect(call()).rejects.toBeInstanceOf(UnknownKindError);
    await expect(call()).rejects.toThrow(
      `${caller} takes a job definition that defineJob() returned; got the text 'index'`,
    );
  });
});

describe('arguments in the wrong order', () => {
  type Call = (...given: unknown[]) => Promise<unknown>;
  const calls: [string, Call][] = [
    ['enqueue', queue.enqueue.bind(queue) as Call],
    ['enqueueMany', queue.enqueueMany.bind(queue) as Call],
    ['enqueueFrom', queue.enqueueFrom.bind(queue) as Call],
    ['find', queue.find.bind(queue) as Call],
  ];

  test.each(calls)('a forgotten database is what %s asks for', async (name, call) => {
    await expect(call(index, { x: 1 })).rejects.toThrow(
      `needs a Drizzle database or transaction: ${name}(db, …)`,
    );
  });

  test('an id before its job is not taken for a find of any kind', async () => {
    const find = queue.find.bind(queue) as Call;
    await expect(find(untouched(), 42, index)).rejects.toThrow('find: the arguments are in the wrong order');
  });
});

describe('what is not there at all', () => {
  type Call = (...given: unknown[]) => Promise<unknown>;
  const enqueue = queue.enqueue.bind(queue) as Call;
  const enqueueMany = queue.enqueueMany.bind(queue) as Call;
  const enqueueFrom = queue.enqueueFrom.bind(queue) as Call;

  test('the database', async () => {
    const asked = 'drizzle-queue needs a Drizzle database or transaction: enqueue(db, …)';
    for (const [db, got] of [
      [undefined, 'undefined'],
      [null, 'object'],
      [{}, 'object'],
      ['postgres://app:secret@db/app', 'string'],
    ]) {
      await expect(enqueue(db, index, 1)).rejects.toThrow(new TypeError(`${asked}; got ${got}`));
    }
  });

  test.each([
    ['postgres.js', () => postgres('postgres://127.0.0.1:9/none')],
    ['node-postgres', () => new pg.Pool()],
  ])('the database, in whose place is a client of %s', async (_, client) => {
    await expect(enqueue(client(), index, 1)).rejects.toThrow('enqueue(db, …); got a client: use drizzle()');
  });

  test.each<[keyof typeof queue, unknown[]]>([
    ['run', [index, 1]],
    ['enqueueMany', [index, []]],
    ['find', [index, 1]],
    ['waitFor', [index, 1]],
    ['list', [{ kind: 'index' }]],
    ['cancel', [1]],
    ['cancelMany', [{ kind: 'index' }]],
    ['pause', ['mail']],
    ['resume', ['mail']],
    ['redrive', [{ kind: 'index' }]],
    ['runNow', [1]],
    ['runNowMany', [[1]]],
  ])('the database of %s, forgotten', async (name, args) => {
    // As JavaScript calls it.
    const call = async () => await (Reflect.get(queue, name) as Call).apply(queue, args);
    await expect(call()).rejects.toThrow(
      `drizzle-queue needs a Drizzle database or transaction: ${name}(db, …)`,
    );
  });

  test.each(Object.entries({ createWorker, drain, runNext }))(
    'the database of %s, forgotten',
    async (name, run) => {
      const options = { queue, handlers: [handle(index, () => {})], deadlineMs: 5 };
      await expect(async () => await Reflect.apply(run, undefined, [options])).rejects.toThrow(
        `drizzle-queue needs a Drizzle database or transaction: ${name}(db, …)`,
      );
    },
  );

  test.each<[string, () => Promise<unknown>, string]>([
    [
      'options',
      () => enqueue(untouched(), index, 1, null),
      "enqueue('index'): options must be an object, got null",
    ],
    [
      'entries',
      () => enqueueMany(untouched(), index),
      "enqueueMany('index') takes [{ payload, … }]; got undefined",
    ],
    [
      'an entry',
      () => enqueueMany(untouched(), index, [{ payload: 1 }, undefined]),
      "enqueueMany('index') takes [{ payload, … }]: an entry must be an object, got undefined",
    ],
    [
      'a bare payload in place of an entry',
      () => enqueueMany(untouched(), index, [7]),
      "enqueueMany('index') takes [{ payload, … }]: an entry must be an object, got 7",
    ],
    [
      'a bare payload that is an object',
      () => enqueueMany(untouched(), index, [{ documentId: 7 }]),
      "enqueueMany('index') takes [{ payload, … }]: unknown option 'documentId'; valid options:",
    ],
    [
      'a select',
      () => enqueueFrom(untouched(), index, 'select 1'),
      "enqueueFrom('index'): the select must be a Drizzle select",
    ],
    [
      'options of enqueueFrom',
      () => enqueueFrom(untouched(), index, select(), null),
      "enqueueFrom('index'): options must be an object, got null",
    ],
    [
      'a key’s expression',
      () => enqueueFrom(untouched(), index, select(), { uniqueKey: 'key' }),
      "enqueueFrom('index'): uniqueKey must be a function",
    ],
  ])('%s', async (_, call, message) => {
    await expect(call()).rejects.toBeInstanceOf(TypeError);
    await expect(call()).rejects.toThrow(message);
  });

  test('tables', () => {
    const tables = { queueJobs: queue.tables.queueJobs, queueResults: undefined } as never;
    expect(() => createQueue({ tables })).toThrow(
      'createQueue: tables.queueResults must be a table that createQueueTables() returned, got undefined',
    );
  });
});

describe('ids and filters', () => {
  const badIds: unknown[] = [0, -1, 1.5, Number.NaN, '1', 1n, null, undefined, 2 ** 53];

  test.each(badIds)('the id %s', async (bad) => {
    const id = bad as number;
    for (const call of [() => queue.find(untouched(), index, id), () => queue.cancel(untouched(), id)]) {
      await expect(call()).rejects.toThrow(/id must be a job id, a whole number above 0; got /);
    }
  });

  test('redrive of a bad id', async () => {
    for (const id of [0, -1, 1.5, Number.NaN]) {
      await expect(queue.redrive(untouched(), id)).rejects.toThrow(/redrive: id must be a job id/);
    }
  });

  test.each([
    ['limit 0', { limit: 0 }, /limit must be a whole number from 1 to 1000/],
    ['limit 1,001', { limit: 1_001 }, /limit/],
    ['limit NaN', { limit: Number.NaN }, /limit/],
    ['job together with kind', { job: index, kind: 'index' }, /job and kind cannot be combined/],
    ['a cursor that is none', { cursor: Number.NaN }, /cursor/],
    ['a text as cursor', { cursor: 'abc' as unknown as number }, /cursor/],
    [
      'a state that is misspelt',
      { state: 'complete' as 'completed' },
      /state must be one of scheduled, due, .*'complete'/,
    ],
    ['a state of Object.prototype', { state: 'toString' as 'due' }, /state must be one of/],
    ['a number as kind', { kind: 5 as unknown as string }, /list: kind must be a string/],
    ['an array as queue', { queue: ['q'] as unknown as string }, /list: queue must be a string/],
    ['NUL in the queue', { queue: 'a\0' }, /list: queue must not contain a NUL/],
    ['null', null as unknown as object, /list: filter must be an object, got null/],
    ['a misspelt state', { stat: 'due' } as object, /list: unknown option 'stat'; did you mean state\?/],
  ])('list: %s', async (_, filter, message) => {
    await expect(queue.list(untouched(), filter)).rejects.toThrow(message);
  });

  test.each([
    ['nothing', {}, /one of id, ids, kind, queue, finishedAfter, finishedBefore; every job is { all: true }/],
    ['a limit alone', { limit: 5 }, /every job is { all: true }/],
    ['a misspelt kind', { knd: 'x' } as object, /redrive: unknown option 'knd'; did you mean kind\?/],
    [
      'an undefined kind',
      { kind: undefined } as object,
      /redrive: kind is undefined; give a value, or leave it out/,
    ],
    [
      'an undefined kind beside a queue',
      { queue: 'q', kind: undefined } as object,
      /redrive: kind is undefined/,
    ],
    [
      'all together with a kind',
      { all: true as const, kind: 'x' },
      /redrive: all and kind cannot be combined/,
    ],
    ['all that is false', { all: false as unknown as true }, /redrive: all must be true, got false/],
    ['limit 0', { all: true as const, limit: 0 }, /limit/],
    ['a number as kind', { kind: 5 as unknown as string }, /redrive: kind must be a string/],
    ['an empty queue', { queue: '' }, /redrive: queue must be a string/],
    ['null', null as unknown as object, /redrive: filter must be an object, got null/],
    [
      'an invalid finishedAfter',
      { finishedAfter: new Date(Number.NaN) },
      /finishedAfter must be a valid Date/,
    ],
    [
      'an invalid finishedBefore',
      { finishedBefore: new Date(Number.NaN) },
      /finishedBefore must be a valid Date/,
    ],
  ])('redrive: %s', async (_, filter, message) => {
    await expect(queue.redrive(untouched(), filter)).rejects.toThrow(message);
  });
});
