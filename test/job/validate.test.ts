import { defineJob, InvalidOutputError, InvalidPayloadError, unvalidated } from 'drizzle-queue';
import fc from 'fast-check';
import * as v from 'valibot';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import * as validate from '../../src/core/job/validate.ts';

/** As promises also where the schema answers at once. */
const payloadToStore: (...args: Parameters<typeof validate.payloadToStore>) => Promise<string> = async (
  ...args
) => await validate.payloadToStore(...args);
const payloadFromStore: (...args: Parameters<typeof validate.payloadFromStore>) => Promise<unknown> = async (
  ...args
) => await validate.payloadFromStore(...args);
const outputToStore: (...args: Parameters<typeof validate.outputToStore>) => Promise<string> = async (
  ...args
) => await validate.outputToStore(...args);

/** The error that a promise is rejected with. */
async function rejection(promise: Promise<unknown>): Promise<unknown> {
  return await promise.then(
    () => expect.fail('it was not rejected'),
    (error: unknown) => error,
  );
}

/** What a handler gets for a payload that was enqueued. */
async function handedOver(job: Parameters<typeof payloadToStore>[0], payload: unknown): Promise<unknown> {
  return await payloadFromStore(job, JSON.parse(await payloadToStore(job, payload)));
}

const line = z.object({ sku: z.string(), count: z.number().int() });

describe.each([
  ['zod', z.object({ lines: z.array(line) }), 'Invalid input: expected string, received number'],
  [
    'valibot',
    v.object({ lines: v.array(v.object({ sku: v.string(), count: v.pipe(v.number(), v.integer()) })) }),
    'Invalid type: Expected string but received 5',
  ],
])('a payload under a schema of %s', (_library, schema, message) => {
  const job = defineJob('ship', { payload: schema });
  const good = { lines: [{ sku: 'a', count: 1 }] };

  test('is stored as it is when the schema takes it', async () => {
    expect(JSON.parse(await payloadToStore(job, good))).toEqual(good);
    expect(await handedOver(job, good)).toEqual(good);
  });

  test('is refused with the path of each complaint', async () => {
    const bad = { lines: [...good.lines, { sku: 5, count: 1.5 }] };
    const error = await rejection(payloadToStore(job, bad as never));
    expect(error).toBeInstanceOf(InvalidPayloadError);
    expect(error).toMatchObject({
      kind: 'ship',
      issues: [{ path: 'lines[1].sku', message }, { path: 'lines[1].count' }],
    });
    expect(String(error)).toMatch(
      /^InvalidPayloadError: The payload of 'ship' is invalid: lines\[1\]\.sku: .+; lines\[1\]\.count: /,
    );
  });

  test('is refused again when a worker claims it and the definition has changed', async () => {
    const error = await rejection(payloadFromStore(job, { items: [] }));
    expect(error).toBeInstanceOf(InvalidPayloadError);
    expect(error).toMatchObject({ issues: [{ path: 'lines' }] });
  });

  test('is refused where it is of another type altogether, with an empty path', async () => {
    for (const other of [null, 'text', 5]) {
      expect(await rejection(payloadFromStore(job, other))).toMatchObject({ issues: [{ path: '' }] });
    }
    expect(await rejection(payloadToStore(job, undefined as never))).toMatchObject({
      issues: [{ path: '' }],
    });
  });
});

describe('the schema is asked about what is stored', () => {
  test('so a Date under z.date() is refused on enqueue, with its path', async () => {
    // @ts-expect-error a Date comes back as a text
    const job = defineJob('remind', { payload: z.object({ at: z.date() }) });
    const error = await rejection(payloadToStore(job, { at: new Date(0) }));
    expect(error).toBeInstanceOf(InvalidPayloadError);
    expect(error).toMatchObject({ issues: [{ path: 'at' }] });
  });

  test('so a Date under z.coerce.date() is stored as text and handed over as a Date', async () => {
    const job = defineJob('remind', { payload: z.object({ at: z.coerce.date() }) });
    const at = new Date('2030-01-02T03:04:05.678Z');
    expect(await payloadToStore(job, { at })).toBe('{"at":"2030-01-02T03:04:05.678Z"}');
    expect(await handedOver(job, { at })).toEqual({ at });
    expect(await handedOver(job, { at: at.toISOString() })).toEqual({ at });
  });

  test('so what JSON would lose is refused before the schema is asked', async () => {
    // @ts-expect-error JSON has no Set
    const job = defineJob('count', { payload: z.object({ tags: z.set(z.string()) }) });
    const error = await rejection(payloadToStore(job, { tags: new Set(['a']) }));
    expect(error).toMatchObject({ issues: [{ path: 'tags', message: expect.stringContaining('a Set') }] });
  });

  test('so properties that the schema does not know are stored, and not handed over', async () => {
    const job = defineJob('send', { payload: z.object({ to: z.string() }) });
    const payload = { to: 'a', more: 1 };
    expect(JSON.parse(await payloadToStore(job, payload))).toEqual(payload);
    expect(await handedOver(job, payload)).toEqual({ to: 'a' });
  });

  test('so what is accepted here is accepted there, for any JSON value and a picky schema', async () => {
    const picky = z.union([
      z.null(),
      z.number().min(0),
      z.array(z.json()).max(2),
      z.record(z.string(), z.int()),
    ]);
    const job = defineJob('any', { payload: picky });
    let accepted = 0;
    await fc.assert(
      fc.asyncProperty(fc.jsonValue(), async (value) => {
        const stored = await payloadToStore(job, value as never).catch((error: unknown) => error);
        if (typeof stored === 'string') {
          accepted++;
          await payloadFromStore(job, JSON.parse(stored));
        } else {
          expect(stored).toBeInstanceOf(InvalidPayloadError);
        }
      }),
    );
    expect(accepted).toBeGreaterThan(5);
  });
});

describe('a schema that transforms', () => {
  const job = defineJob('resize', {
    payload: z.object({ width: z.string().transform(Number), unit: z.string().default('px') }),
  });

  test('has its input stored, and its output handed to the handler', async () => {
    expect(await payloadToStore(job, { width: '640' })).toBe('{"width":"640"}');
    expect(await payloadFromStore(job, { width: '640' })).toEqual({ width: 640, unit: 'px' });
  });
});

describe('a schema that checks asynchronously', () => {
  const known = new Set(['a']);
  const job = defineJob('greet', {
    payload: z.object({
      user: z.string().refine(async (user) => await Promise.resolve(known.has(user)), 'unknown user'),
    }),
  });

  test('is waited for', async () => {
    expect(await payloadToStore(job, { user: 'a' })).toBe('{"user":"a"}');
    expect(await payloadFromStore(job, { user: 'a' })).toEqual({ user: 'a' });
    const issues = [{ path: 'user', message: 'unknown user' }];
    expect(await rejection(payloadToStore(job, { user: 'b' }))).toMatchObject({ issues });
    expect(await rejection(payloadFromStore(job, { user: 'b' }))).toMatchObject({ issues });
  });

  test('may fail by itself, which is no complaint about the payload', async () => {
    const error = new Error('no connection');
    const failing = defineJob('greet', {
      payload: v.pipeAsync(
        v.string(),
        v.checkAsync(async () => {
          throw error;
        }),
      ),
    });
    expect(await rejection(payloadToStore(failing, 'a'))).toBe(error);
  });
});

describe('a payload that may be left out', () => {
  test('is null in the database, and left out again for the handler', async () => {
    const job = defineJob('sync', { payload: z.object({ full: z.boolean() }).optional() });
    expect(await payloadToStore(job, undefined)).toBe('null');
    expect(await payloadFromStore(job, null)).toBeUndefined();
    expect(await handedOver(job, { full: true })).toEqual({ full: true });
  });

  test('is still refused when it is there and wrong', async () => {
    const job = defineJob('sync', { payload: z.object({ full: z.boolean() }).optional() });
    expect(await rejection(payloadFromStore(job, { full: 'yes' }))).toBeInstanceOf(InvalidPayloadError);
    expect(await rejection(payloadToStore(job, null as never))).toBeInstanceOf(InvalidPayloadError);
  });

  test('is not asked for again when the schema itself has failed', async () => {
    const error = new Error('no connection');
    const asked: unknown[] = [];
    const check = v.pipeAsync(
      v.any(),
      v.checkAsync(async (value) => {
        asked.push(value);
        throw error;
      }),
    );
    expect(await rejection(payloadFromStore(defineJob('sync', { payload: check }), null))).toBe(error);
    expect(asked).toEqual([null]);
  });

  test("is the schema's default where it has one", async () => {
    const job = defineJob('sync', { payload: z.object({ full: z.boolean() }).default({ full: false }) });
    expect(await handedOver(job, undefined)).toEqual({ full: false });
  });

  test('is null where the schema takes null', async () => {
    const job = defineJob('sync', { payload: z.string().nullish() });
    expect(await handedOver(job, undefined)).toBeNull();
    expect(await handedOver(job, null)).toBeNull();
  });

  test('is refused as null by a schema that takes neither, with the complaint about null', async () => {
    const job = defineJob('sync', { payload: z.string() });
    expect(await rejection(payloadFromStore(job, null))).toMatchObject({
      issues: [{ message: 'Invalid input: expected string, received null' }],
    });
  });
});

test('only a schema that answers a promise is waited for', async () => {
  const sync = defineJob('greet', { payload: z.string() });
  expect(validate.payloadToStore(sync, 'a')).toBe('"a"');
  expect(() => validate.payloadToStore(sync, 5 as never)).toThrow(InvalidPayloadError);
  const async = defineJob('greet', {
    payload: v.pipeAsync(
      v.string(),
      v.checkAsync(async () => true),
    ),
  });
  const stored = validate.payloadToStore(async, 'a');
  expect(stored).toBeInstanceOf(Promise);
  expect(await stored).toBe('"a"');
});

test('an error that a payload itself throws is passed on', async () => {
  const error = new Error('from a getter');
  const payload = {
    get id(): number {
      throw error;
    },
  };
  const job = defineJob('sync', { payload: unvalidated<{ id: number }>() });
  expect(await rejection(payloadToStore(job, payload))).toBe(error);
});

describe('a job without a payload schema', () => {
  test('has the payload undefined, stored as null', async () => {
    const job = defineJob('sync');
    expect(await payloadToStore(job, undefined)).toBe('null');
    expect(await payloadFromStore(job, null)).toBeUndefined();
  });

  test('has none for its handler even where an older version stored one', async () => {
    expect(await payloadFromStore(defineJob('sync'), { old: true })).toBeUndefined();
  });

  test('an unvalidated payload is handed over as it was stored', async () => {
    const job = defineJob('sync', { payload: unvalidated<{ id: number }>() });
    expect(await handedOver(job, { id: 1 })).toEqual({ id: 1 });
    expect(await handedOver(job, 'not even an object')).toBe('not even an object');
    expect(await rejection(payloadToStore(job, { id: Number.NaN }))).toMatchObject({
      issues: [{ path: 'id' }],
    });
  });
});

describe('an output', () => {
  const job = defineJob('send', { output: z.object({ messageId: z.string().min(1) }) });

  test('is stored as it is when its schema takes it', async () => {
    expect(await outputToStore(job, { messageId: 'm1' })).toBe('{"messageId":"m1"}');
  });

  test('is refused with its own error', async () => {
    const error = await rejection(outputToStore(job, { messageId: '' }));
    expect(error).toBeInstanceOf(InvalidOutputError);
    expect(error).toMatchObject({ kind: 'send', issues: [{ path: 'messageId' }] });
    expect(String(error)).toMatch(/^InvalidOutputError: The output of 'send' is invalid: messageId: /);
    expect(await rejection(outputToStore(job, undefined as never))).toBeInstanceOf(InvalidOutputError);
  });

  test('without a schema may be any JSON value, or nothing', async () => {
    const free = defineJob('send');
    expect(await outputToStore(free, undefined)).toBe('null');
    expect(await outputToStore(free, [1, { a: null }])).toBe('[1,{"a":null}]');
    const error = await rejection(outputToStore(free, { id: 1n }));
    expect(error).toBeInstanceOf(InvalidOutputError);
    expect(error).toMatchObject({ issues: [{ path: 'id' }] });
  });
});
