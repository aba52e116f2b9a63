import { runInNewContext } from 'node:vm';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { formatPath, MAX_DEPTH, toStoredJson, UnstorableValueError } from '../../src/core/job/stored-json.ts';

/** Whether a value contains, as a text or a key, what Postgres cannot keep. */
function hasUnstorableText(value: unknown): boolean {
  if (typeof value === 'string') return value.includes('\0') || /\p{Surrogate}/u.test(value);
  if (typeof value !== 'object' || value === null) return false;
  return Object.entries(value).some((entry) => entry.some(hasUnstorableText));
}

/** Minus zero is the one JSON value that `JSON.stringify` changes. */
const noMinusZero = (value: unknown): unknown => JSON.parse(JSON.stringify(value));

/** The issue for which a value is refused. */
function refusal(value: unknown): { path: string; message: string } {
  try {
    toStoredJson(value);
  } catch (error) {
    if (error instanceof UnstorableValueError) return error.issue;
    throw error;
  }
  return expect.fail('it was not refused');
}

function nested(levels: number): unknown {
  let value: unknown = 'inside';
  for (let level = 0; level < levels; level++) value = level % 2 === 0 ? { a: value } : [value];
  return value;
}

describe('any JSON value', () => {
  test('is what JSON.parse makes of its stored text', () => {
    fc.assert(
      fc.property(fc.jsonValue({ stringUnit: 'grapheme', maxDepth: 6 }).map(noMinusZero), (value) => {
        fc.pre(!hasUnstorableText(value));
        expect(JSON.parse(toStoredJson(value))).toEqual(value);
      }),
      { numRuns: 500 },
    );
  });

  test('is refused if and only if Postgres could not keep one of its texts', () => {
    const text = fc.string({ unit: fc.constantFrom('a', '\0', '\ud83d', '\ude00', '\ud83d\ude00') });
    const tree = fc.letrec<{ value: unknown }>((tie) => ({
      value: fc.oneof({ maxDepth: 3 }, text, fc.array(tie('value')), fc.dictionary(text, tie('value'))),
    })).value;
    fc.assert(
      fc.property(tree, (value) => {
        if (hasUnstorableText(value)) expect(() => toStoredJson(value)).toThrow(UnstorableValueError);
        else expect(JSON.parse(toStoredJson(value))).toEqual(value);
      }),
      { numRuns: 1_000 },
    );
  });
});

describe('what is stored differently', () => {
  test.each([
    ['a property that is undefined is left out', { a: undefined, b: 1 }, { b: 1 }],
    ['a Date is its ISO text', { at: new Date(0) }, { at: '1970-01-01T00:00:00.000Z' }],
    ['a URL is its text', new URL('https://example.com/a'), 'https://example.com/a'],
    ['an object with toJSON is what that says', { toJSON: (key: string) => [key, 1] }, ['', 1]],
    ['toJSON is told its key', { at: { toJSON: (key: string) => key } }, { at: 'at' }],
    ['toJSON is told its index', [[{ toJSON: (key: string) => key }]], [['0']]],
    [
      'a boxed number, text and boolean',
      [Object(1), Object('\u{1f600}'), Object(true)],
      [1, '\u{1f600}', true],
    ],
    ['minus zero is zero', [-0], [0]],
    [
      'an instance of a class is its properties',
      new (class {
        a = 1;
      })(),
      { a: 1 },
    ],
    ['a property named toJSON that is no function stays one', { toJSON: 5 }, { toJSON: 5 }],
    ['an object without prototype', Object.assign(Object.create(null), { a: 1 }), { a: 1 }],
    [
      'a property named __proto__ stays one',
      JSON.parse('{"__proto__":{"a":1}}'),
      JSON.parse('{"__proto__":{"a":1}}'),
    ],
    ['a property with a symbol for a key is left out', { [Symbol('s')]: 1 }, {}],
  ])('%s', (_what, value, stored) => {
    expect(JSON.parse(toStoredJson(value))).toEqual(stored);
  });

  test('toJSON may answer the object itself, or one that has a toJSON again', () => {
    class Self {
      a = 1;
      toJSON(): unknown {
        return this;
      }
    }
    expect(toStoredJson([new Self()])).toBe('[{"a":1}]');
    class Endless {
      a = 2;
      toJSON(): unknown {
        return new Endless();
      }
    }
    expect(toStoredJson(new Endless())).toBe('{"a":2}');
  });

  test('the same object may stand in several places', () => {
    const shared = { a: [1] };
    expect(toStoredJson([shared, shared, { shared }])).toBe('[{"a":[1]},{"a":[1]},{"shared":{"a":[1]}}]');
  });

  test('as many levels as Postgres surely takes', () => {
    expect(() => toStoredJson(nested(MAX_DEPTH))).not.toThrow();
  });
});

describe('what is refused, and where it says that it is', () => {
  const cyclic: Record<string, unknown> = { list: [] };
  cyclic.list = [{ back: cyclic }];

  test.each([
    ['undefined', undefined, '', 'a value of type undefined is not JSON'],
    ['undefined in an array', { list: [1, undefined] }, 'list[1]', 'undefined in an array'],
    // biome-ignore lint/suspicious/noSparseArray: that is what is tested.
    ['a hole in an array', [[1, , 2]], '[0][1]', 'undefined in an array'],
    ['NaN', { a: { b: Number.NaN } }, 'a.b', 'NaN is not a JSON number'],
    ['Infinity', [Number.POSITIVE_INFINITY], '[0]', 'Infinity is not a JSON number'],
    ['a boxed NaN', { a: Object(Number.NaN) }, 'a', 'NaN is not a JSON number'],
    ['a function', { a: [() => 1] }, 'a[0]', 'a value of type function'],
    ['a symbol', { a: Symbol('s') }, 'a', 'a value of type symbol'],
    ['a BigInt', { lines: [{ id: 1n }] }, 'lines[0].id', 'a BigInt is not JSON; send it as text'],
    ['a boxed BigInt', { id: Object(1n) }, 'id', 'a BigInt'],
    ['an invalid Date', { at: new Date(Number.NaN) }, 'at', 'an invalid Date'],
    ['a Map', { a: new Map() }, 'a', 'a Map would lose what it holds'],
    ['a Map with a property', Object.assign(new Map(), { limit: 1 }), '', 'a Map would lose what it holds'],
    ['a Set', [new Set([1])], '[0]', 'a Set would lose what it holds'],
    ['a WeakMap', new WeakMap(), '', 'a WeakMap would lose what it holds'],
    [
      'a Promise that was not awaited',
      { url: Promise.resolve('x') },
      'url',
      'a Promise would lose what it holds',
    ],
    ['a RegExp', { a: /x/ }, 'a', 'a RegExp would lose what it holds'],
    ['an Error', { error: new TypeError('x') }, 'error', 'a Error would lose what it holds'],
    ['an Error of another realm', runInNewContext('new Error("x")'), '', 'a Error would lose what it holds'],
    ['a Map of another realm', runInNewContext('new Map()'), '', 'a Map would lose what it holds'],
    ['a Response', { a: new Response('x') }, 'a', 'a Response would lose what it holds'],
    ['URLSearchParams', new URLSearchParams('a=1'), '', 'a URLSearchParams would lose what it holds'],
    ['FormData', new FormData(), '', 'a FormData would lose what it holds'],
    ['a generator', (function* () {})(), '', 'a Generator would lose what it holds'],
    ['an iterator', { all: [1].values() }, 'all', 'a Array Iterator would lose what it holds'],
    ['an AbortSignal', AbortSignal.abort(), '', 'a AbortSignal would lose what it holds'],
    ['a Buffer', { file: Buffer.from('x') }, 'file', 'binary data is not JSON'],
    ['a typed array', { file: new Float32Array(1) }, 'file', 'binary data'],
    ['an ArrayBuffer', { file: new ArrayBuffer(1) }, 'file', 'binary data'],
    ['a NUL in a text', { a: ['b', 'c\0d'] }, 'a[1]', 'contains a NUL character'],
    ['a NUL in a key', { a: { 'b\0': 1 } }, 'a', 'contains a NUL character'],
    ['the first half of a surrogate pair', { a: 'x\ud83d' }, 'a', 'half of a surrogate pair'],
    ['the second half of a surrogate pair', { a: '\ude00x' }, 'a', 'half of a surrogate pair'],
    ['half a surrogate pair in a key', { '\ud83d': 1 }, '', 'half of a surrogate pair'],
    ['the halves the wrong way round', '\ude00\ud83d', '', 'half of a surrogate pair'],
    ['a NUL that toJSON answers', { a: { toJSON: () => 'x\0' } }, 'a', 'contains a NUL character'],
    ['nothing that toJSON answers', [{ toJSON: () => undefined }], '[0]', 'a value of type undefined'],
    ['an object that contains itself', cyclic, 'list[0].back', 'the value contains itself'],
    ['a level too many', nested(MAX_DEPTH + 1), 'a[0].a', `nested deeper than ${MAX_DEPTH} levels`],
  ])('%s', (_what, value, path, message) => {
    const issue = refusal(value);
    expect(issue.path).toBe(path);
    expect(issue.message).toContain(message);
  });

  test('objects without end, made up by their toJSON', () => {
    class Endless {
      toJSON(): unknown {
        return { deeper: new Endless() };
      }
    }
    expect(refusal(new Endless()).message).toContain('nested deeper');
  });

  test('what toJSON answers for the very key that it is asked with', () => {
    const bad = (key: string) => ({ toJSON: (asked: string) => (asked === key ? Number.NaN : 1) });
    expect(refusal({ at: bad('at') }).path).toBe('at');
    expect(refusal([1, bad('1')]).path).toBe('[1]');
    expect(refusal(bad('')).path).toBe('');
  });

  test('the first of several places is named', () => {
    expect(refusal({ a: 1, b: Number.NaN, c: 1n }).path).toBe('b');
  });

  test('an error that the value itself throws is passed on', () => {
    const error = new Error('from a getter');
    const value = {
      get a(): unknown {
        throw error;
      },
    };
    expect(() => toStoredJson(value)).toThrow(error);
  });
});

test('formatPath writes a path as one would in code', () => {
  expect(formatPath([])).toBe('');
  expect(formatPath(['lines', 2, 'sku'])).toBe('lines[2].sku');
  expect(formatPath([0, 1, 'a', Symbol('s')])).toBe('[0][1].a.Symbol(s)');
});

/** As node-postgres makes them: its class holds functions beside the rows. */
class DriverResult {
  readonly command = 'INSERT';
  readonly rowCount = 2;
  readonly fields = [];
  readonly _types = { getTypeParser: () => () => null };
  constructor(readonly rows: readonly unknown[]) {}
}

test('a result of node-postgres is stored as its rows, at any depth', () => {
  const rows = [
    { id: 1, at: new Date(0) },
    { id: 2, at: new Date(1) },
  ];
  expect(toStoredJson(new DriverResult(rows))).toBe(JSON.stringify(rows));
  expect(toStoredJson([new DriverResult([]), 1])).toBe('[[],1]');
  expect(toStoredJson({ made: new DriverResult([{ deep: new DriverResult([]) }]) })).toBe(
    '{"made":[{"deep":[]}]}',
  );
});

test('the rows of such a result are checked as any value', () => {
  expect(refusal({ made: new DriverResult([{ n: Number.NaN }]) })).toEqual({
    path: 'made[0].n',
    message: 'NaN is not a JSON number',
  });
});

test('an object of the app with the same names keeps all of them', () => {
  const report = { command: 'REPORT', rowCount: 1, rows: [1], fields: ['n'] };
  expect(JSON.parse(toStoredJson(report))).toEqual(report);
});
