import { sql } from 'drizzle-orm';
import { createQueue, defineJob, InvalidPayloadError, type JobDefinition, unvalidated } from 'drizzle-queue';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { claimJobs } from '../../src/core/queries/claim/claim-jobs.ts';
import { finishJobs } from '../../src/core/queries/settle/finish-jobs.ts';
import { queryRows } from '../../src/core/sql/executor.ts';
import { claimOf, tables } from '../queries/support/jobs.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { drivers, type OpenDriver } from './support/drivers.ts';
import { untouched } from './support/executors.ts';

const database = useTestDatabase();
// The limit has tests of its own: payload-limit.test.ts.
const queue = createQueue({ maxPayloadBytes: 100 * 1024 * 1024 });
const anything = defineJob('anything', { payload: unvalidated<unknown>(), queue: 'q' });

/** `depth` levels of arrays. */
function nested(depth: number): unknown {
  let value: unknown = 'the bottom';
  for (let level = 0; level < depth; level++) value = [value];
  return value;
}

/** A property that an object literal would take for the prototype. */
const withProto: unknown = JSON.parse('{"__proto__": {"admin": true}, "constructor": 1, "toString": null}');

const kept: Readonly<Record<string, unknown>> = {
  null: null,
  true: true,
  false: false,
  zero: 0,
  'a fraction': -12.75e-7,
  'the largest safe integer': Number.MAX_SAFE_INTEGER,
  'the largest number': Number.MAX_VALUE,
  'an empty string': '',
  'a string that reads like a number': '10.5',
  'a string that reads like JSON': '{"a": [1, "\\u0041"]}',
  'a string that reads like null': 'null',
  'quotes, backslashes and control characters': `'"\\ \n\r\t\b\f\u0001\u007f $1 $$ {} %`,
  'unicode, also outside the basic plane': 'ü ß 漢字 😀 👩‍👩‍👧 \u{10ffff} \ufeff \u2028',
  'an empty array': [],
  'an empty object': {},
  'an empty key': { '': { ' ': 1 } },
  'odd keys': { "it's": 1, '"': 2, '\\': 3, 'a.b': 4, '0': 5, 漢: 6 },
  'keys of Object.prototype': withProto,
  'an array of all sorts': [null, 1, 'x', [true, [{}]], { a: [] }],
};

describe.each(Object.entries(drivers))('%s', (name, open) => {
  let driver: OpenDriver;

  beforeAll(async () => {
    driver = await open(database);
  });
  afterAll(() => driver.close());

  /** The payload as `find` and a claim give it back; both must say the same. */
  async function roundTrip(payload: unknown): Promise<unknown> {
    const { db } = driver;
    const { id } = await queue.enqueue(db, anything, payload);
    const found = await queue.find(db, anything, id);
    const [claimed] = await claimJobs(db, tables, claimOf({ kinds: ['anything'] }));
    expect(claimed?.id).toBe(id);
    expect(claimed?.payload).toEqual(found?.payload);
    await queryRows(db, tables, sql`delete from queue_jobs`);
    return claimed?.payload;
  }

  test.each(Object.entries(kept))('keeps %s', async (_, payload) => {
    const stored = await roundTrip(payload);
    expect(stored).toEqual(payload);
    expect(JSON.stringify(stored, sortedKeys)).toBe(JSON.stringify(payload, sortedKeys));
  });

  test('keeps __proto__ as a property, and nobody’s prototype changes', async () => {
    const stored = await roundTrip(withProto);
    expect(Object.keys(stored as object).sort()).toEqual(['__proto__', 'constructor', 'toString']);
    expect(Object.getPrototypeOf(stored)).toBe(Object.prototype);
    expect(Reflect.get({}, 'admin')).toBeUndefined();
  });

  test('keeps whatever JSON value there is', async () => {
    await fc.assert(
      fc.asyncProperty(fc.jsonValue({ noUnicodeString: false }), async (value) => {
        fc.pre(!/\\u0000|\\ud[89a-f]/.test(JSON.stringify(value)));
        // -0 is not JSON.
        expect(await roundTrip(value)).toEqual(JSON.parse(JSON.stringify(value)));
      }),
      { numRuns: 40 },
    );
  });

  test('keeps 10 MB', async () => {
    const text = 'ü😀"\\'.repeat(1_000_000);
    expect((await roundTrip({ text })) as object).toEqual({ text });
  });

  test('keeps 1,000 levels', async () => {
    expect(JSON.stringify(await roundTrip(nested(1_000)))).toBe(JSON.stringify(nested(1_000)));
  });

  test('keeps in bulk, and as output and metadata, what it keeps alone', async () => {
    const { db } = driver;
    const values = Object.values(kept);
    const metadata = { values };
    const answers = await queue.enqueueMany(
      db,
      anything,
      values.map((payload) => ({ payload, metadata })),
    );
    const claimed = await claimJobs(db, tables, claimOf({ kinds: ['anything'], limit: 100 }));
    expect(claimed.map(({ payload }) => payload)).toEqual(values);
    expect(claimed[0]?.metadata).toEqual(metadata);
    await finishJobs(
      db,
      tables,
      { queue: 'q', workerId: 1 },
      claimed.map(({ id, fence, payload }) => ({
        id,
        fence,
        transition: {
          type: 'finish',
          state: 'completed',
          output: JSON.stringify(payload),
          error: null,
          keepResult: true,
        },
      })),
    );
    for (const [place, { id }] of answers.entries()) {
      const record = await queue.find(db, anything, id);
      expect(record).toMatchObject({ state: 'completed', payload: values[place] });
      expect(record?.state === 'completed' && record.output).toEqual(values[place]);
    }
  });

  test('a refused payload leaves the transaction usable', async () => {
    const { db } = driver;
    const id = await db.transaction(async (tx) => {
      await expect(queue.enqueue(tx, anything, { text: 'a\0b' })).rejects.toThrow(InvalidPayloadError);
      return (await queue.enqueue(tx, anything, 'after it')).id;
    });
    expect(await queue.find(db, id)).toMatchObject({ payload: 'after it' });
    await queryRows(db, tables, sql`delete from queue_jobs`);
    expect(name).toBeDefined();
  });
});

function sortedKeys(_: string, value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  // jsonb orders keys by length.
  return Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
}

describe('becomes what JSON makes of it', () => {
  class Money {
    constructor(readonly cents: number) {}
  }

  test.each<[string, unknown, unknown]>([
    ['undefined properties are left out', { a: undefined, b: 1 }, { b: 1 }],
    ['a Date is its ISO text', { at: new Date(86_400_000) }, { at: '1970-01-02T00:00:00.000Z' }],
    ['a URL is its text', new URL('https://example.com/a?b=1'), 'https://example.com/a?b=1'],
    ['an object with toJSON is what that says', { toJSON: () => ({ a: [1] }) }, { a: [1] }],
    ['an instance is its own properties', new Money(5), { cents: 5 }],
    ['symbols are left out', { [Symbol('s')]: 1, a: 2 }, { a: 2 }],
    ['-0 is 0', [-0], [0]],
    ['the same object twice is there twice', ((o) => [o, o])({ a: 1 }), [{ a: 1 }, { a: 1 }]],
    ['undefined is null', undefined, null],
  ])('%s', async (_, payload, stored) => {
    const { id } = await queue.enqueue(database.db, anything, payload);
    expect((await queue.find(database.db, anything, id))?.payload).toEqual(stored);
  });
});

describe('refuses, with the path, before anything is sent', () => {
  const cyclic: Record<string, unknown> = { a: [] };
  cyclic.a = [{ back: cyclic }];

  test.each<[string, unknown, string, RegExp]>([
    ['NUL in a value', { lines: [{ text: 'a\0b' }] }, 'lines[0].text', /NUL/],
    ['NUL in a key', { a: { 'x\0': 1 } }, 'a', /NUL/],
    ['NUL in the value itself', '\0', '', /NUL/],
    ['half a surrogate pair, the first', { a: 'x\ud83d' }, 'a', /surrogate/],
    ['half a surrogate pair, the second', ['\ude00x'], '[0]', /surrogate/],
    ['half a surrogate pair in a key', { '\ud83d': 1 }, '', /surrogate/],
    ['surrogates in the wrong order', ['\ude00\ud83d'], '[0]', /surrogate/],
    ['1,001 levels', nested(1_001), '[0][0][0]', /deeper than 1000/],
    ['undefined in an array', { a: [1, undefined] }, 'a[1]', /undefined/],
    ['a BigInt', { a: 1n }, 'a', /BigInt/],
    ['an invalid Date', { at: new Date(Number.NaN) }, 'at', /invalid Date/],
    ['NaN', { a: Number.NaN }, 'a', /NaN/],
    ['Infinity', [Number.NEGATIVE_INFINITY], '[0]', /-Infinity/],
    ['a Map', { a: new Map([[1, 2]]) }, 'a', /Map/],
    ['a Set', new Set([1]), '', /Set/],
    ['a function', { a: () => 1 }, 'a', /function/],
    ['a symbol', [Symbol('s')], '[0]', /symbol/],
    ['binary data', { file: new Uint8Array(3) }, 'file', /base64/],
    ['a cycle', cyclic, 'a[0].back', /itself/],
    ['what toJSON answers', { a: { toJSON: () => Number.NaN } }, 'a', /NaN/],
  ])('%s', async (_, payload, path, message) => {
    const refused = queue.enqueue(untouched(), anything, payload);
    await expect(refused).rejects.toBeInstanceOf(InvalidPayloadError);
    await expect(refused).rejects.toMatchObject({
      kind: 'anything',
      issues: [{ path, message: expect.stringMatching(message) }],
    });
    await expect(queue.enqueueMany(untouched(), anything, [{ payload: 1 }, { payload }])).rejects.toThrow(
      InvalidPayloadError,
    );
    await expect(queue.enqueue(untouched(), anything, 1, { metadata: { payload } })).rejects.toMatchObject({
      name: 'InvalidPayloadError',
      issues: [{ path: expect.stringMatching(/^metadata\.payload/) }],
    });
  });

  test('what the definition’s schema refuses', async () => {
    const send = defineJob('send', { payload: z.object({ to: z.array(z.email()), at: z.coerce.date() }) });
    const refused = queue.enqueue(untouched(), send, { to: ['a@example.com', 'nobody'], at: 'soon' });
    await expect(refused).rejects.toMatchObject({
      name: 'InvalidPayloadError',
      issues: [{ path: 'to[1]' }, { path: 'at' }],
    });
  });

  test('a Date where the schema wants a Date, since a worker would get its text', async () => {
    // @ts-expect-error a Date comes back as a text
    const at = defineJob('at', { payload: z.object({ at: z.date() }) });
    await expect(queue.enqueue(untouched(), at, { at: new Date() })).rejects.toMatchObject({
      issues: [{ path: 'at' }],
    });
  });
});

describe('a payload for a definition that has none', () => {
  const sync = defineJob('sync');
  // As JavaScript would call it, or a value of type any.
  const unknownJob: JobDefinition = sync;
  const message = /enqueue\('sync'\): its definition has no payload.* defineJob\('sync', { payload: … }\)/;

  test('is refused by each way to enqueue before anything is sent, and says what to write', async () => {
    const executor = untouched();
    for (const payload of [{ userId: 1 }, 0, '', false, { delayMs: 1_000 }]) {
      const refused = { name: 'TypeError', message: expect.stringMatching(message) };
      await expect(queue.enqueue(executor, unknownJob, payload)).rejects.toMatchObject(refused);
      await expect(queue.enqueueMany(executor, unknownJob, [{}, { payload }])).rejects.toMatchObject(refused);
      expect(() => queue.enqueueQuery(database.db, unknownJob, payload)).toThrow(message);
    }
  });

  test('may be undefined or null, which are stored alike', async () => {
    for (const payload of [undefined, null]) {
      const { id } = await queue.enqueue(database.db, unknownJob, payload, { queue: 'nulls' });
      expect(await queue.find(database.db, id)).toMatchObject({ payload: null });
    }
  });
});
