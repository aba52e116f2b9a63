import * as errors from 'drizzle-queue';
import { NonRetryableError, QueueError, UnknownKindError } from 'drizzle-queue';
import { expect, test } from 'vitest';

// The query makes it another module, as the CommonJS file of the package is another than its ES module.
const copy: typeof import('../src/errors.ts') = await import(`../src/errors.ts?${'another copy'}`);

const classes = Object.entries(copy).filter(([name]) => name.endsWith('Error'));

test('every error class is known by a brand of its own', () => {
  expect(classes.length).toBeGreaterThanOrEqual(10);
  expect(new Set(classes.map(([, type]) => type.brand)).size).toBe(classes.length);
  for (const [name, type] of classes) expect(Object.hasOwn(type, 'brand'), name).toBe(true);
});

test.each(classes)('an instance of %s of another copy of the package is one', (name, type) => {
  const own = Reflect.get(errors, name);
  expect(own).not.toBe(type);
  const error = Object.create(type.prototype);
  expect(error).toBeInstanceOf(own);
  expect(error).toBeInstanceOf(QueueError);
  // But for those that it extends.
  const others = classes.filter(
    ([, other]) => other !== type && !Object.prototype.isPrototypeOf.call(other.prototype, type.prototype),
  );
  for (const [other] of others) expect(error).not.toBeInstanceOf(Reflect.get(errors, other));
});

class NoSuchOrder extends NonRetryableError {}
class CopysNoSuchOrder extends copy.NonRetryableError {}

test("an app's class that extends one of them is that one too, and still its own", () => {
  expect(new CopysNoSuchOrder('gone')).toBeInstanceOf(NonRetryableError);
  expect(new NoSuchOrder('gone')).toBeInstanceOf(NoSuchOrder);
  expect(new NonRetryableError('gone')).not.toBeInstanceOf(NoSuchOrder);
  expect(new CopysNoSuchOrder('gone')).not.toBeInstanceOf(NoSuchOrder);
});

test.each([
  undefined,
  null,
  'NonRetryableError',
  new Error('gone'),
  {},
  Object.create(null),
  { constructor: null },
  { constructor: { brand: 'NonRetryableError' } },
  NonRetryableError,
])('%s is none', (value) => {
  expect(value).not.toBeInstanceOf(QueueError);
  expect(value).not.toBeInstanceOf(UnknownKindError);
});
