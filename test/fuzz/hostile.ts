import fc from 'fast-check';

/** What a hostile value throws when it is read; where the caller's own object is read, it may come back to the caller. */
export class Trap extends Error {}

function spring(): never {
  throw new Trap('a hostile value was read');
}

/** Texts that would do harm wherever a text were spliced into SQL, into JSON or into a path. */
const odd = [
  `'; drop table canary; --`,
  `"; drop table canary; --`,
  `"" ; drop table "canary" cascade; --`,
  `\\'; drop table canary; --`,
  `E'\\x27; drop table canary; --`,
  `$$; drop table canary; $$`,
  `*/ drop table canary; /*`,
  `') returning (select pg_sleep(60)) --`,
  '$1',
  '$1::text',
  '\u0024{1}',
  '?',
  ':name',
  '%s%n',
  '\\',
  '\\u0000',
  '{1,2}',
  '{"a": ["b"]}',
  '$.a[*] ? (@ == 1)',
  'a.b[0]',
  '__proto__',
  'constructor',
  'toString',
  'null',
  'NaN',
  'infinity',
  'public.queue_jobs',
  ' ',
  '\n',
  '\u0001\u001f\u007f',
  '\ufeff\u202e',
  '漢字 ü 😀',
  'A',
  'x'.repeat(200),
  'ü'.repeat(100),
];

/** Texts that Postgres cannot keep, or that are too long for a name. */
const impossible = [
  '',
  'a\0b',
  '\0',
  '\ud83d',
  '\ude00\ud83d',
  'x'.repeat(201),
  'ü'.repeat(101),
  'x'.repeat(100_000),
];

/** Any text that can be a name: of a kind, a queue, or a unique key. */
export const name = fc
  .oneof(fc.constantFrom(...odd), fc.string({ unit: 'binary', maxLength: 40 }))
  .filter((text) => text !== '' && !text.includes('\0') && Buffer.byteLength(text) <= 200);

/** Any text at all. */
export const text = fc.oneof(
  fc.constantFrom(...odd, ...impossible),
  fc.string({ unit: 'binary', maxLength: 40 }),
  fc.string({ unit: 'grapheme', maxLength: 40 }),
);

const traps: readonly unknown[] = [
  { toString: spring },
  { toJSON: spring },
  { valueOf: spring, toString: spring },
  { [Symbol.toPrimitive]: spring },
  Object.defineProperty({}, 'a', { get: spring, enumerable: true }),
  Object.create(null),
  Symbol('s'),
  Object.assign(() => undefined, { as: 5 }),
  () => 5,
  { length: -1 },
  { execute: 'nothing' },
  { execute: () => undefined },
  { kind: 5, maxAttempts: 1 },
  new Date(Number.NaN),
  new Date(8.64e15),
  Number.NaN,
  Number.POSITIVE_INFINITY,
  -0,
  2 ** 53,
  1e308,
  -1,
  10n ** 30n,
];

/** Any value at all. */
export const value: fc.Arbitrary<unknown> = fc.oneof(
  text,
  fc.constantFrom(...traps),
  fc.integer(),
  fc.double(),
  fc.anything({
    withBigInt: true,
    withBoxedValues: true,
    withDate: true,
    withMap: true,
    withNullPrototype: true,
    withObjectString: true,
    withSet: true,
    withSparseArray: true,
    withTypedArray: true,
  }),
);

/** Mostly what belongs there, so that what stands behind it is reached too. */
export function mostly<T>(right: fc.Arbitrary<T>): fc.Arbitrary<unknown> {
  return fc.oneof({ weight: 4, arbitrary: right }, { weight: 1, arbitrary: value });
}

/** Options with some of these names, mostly with values that belong there. */
export function options(right: Readonly<Record<string, fc.Arbitrary<unknown>>>): fc.Arbitrary<unknown> {
  const entries = Object.entries(right).map(([key, arbitrary]) => [key, mostly(arbitrary)] as const);
  return mostly(fc.record(Object.fromEntries(entries), { requiredKeys: [] }));
}
