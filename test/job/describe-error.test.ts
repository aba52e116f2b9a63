import { DrizzleQueryError } from 'drizzle-orm';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { describeError, storable } from '../../src/core/job/describe-error.ts';

const messageOf = (thrown: unknown): string => describeError(thrown, 1).message;

/** Throws whatever it is asked for. */
const hostile = new Proxy(
  {},
  {
    get: () => {
      throw new Error('get');
    },
    getPrototypeOf: () => {
      throw new Error('getPrototypeOf');
    },
  },
);

function revoked(): object {
  const { proxy, revoke } = Proxy.revocable({}, {});
  revoke();
  return proxy;
}

/** An error with one property replaced. */
function errorWith(property: string, descriptor: PropertyDescriptor): Error {
  return Object.defineProperty(new Error('the message'), property, descriptor);
}

describe('an Error', () => {
  test('keeps its name, message and stack, and the attempt', () => {
    const error = new TypeError('no such host');
    expect(describeError(error, 3)).toEqual({
      attempt: 3,
      name: 'TypeError',
      message: 'no such host',
      stack: error.stack,
    });
  });

  test('without a stack has none', () => {
    expect(describeError(errorWith('stack', { value: undefined }), 1)).toEqual({
      attempt: 1,
      name: 'Error',
      message: 'the message',
    });
  });

  test('without a name is an Error', () => {
    expect(describeError(errorWith('name', { value: '' }), 1).name).toBe('Error');
  });

  test('whose name or message is no text is taken as text', () => {
    expect(describeError(errorWith('name', { value: 42 }), 1).name).toBe('42');
    expect(messageOf(errorWith('message', { value: undefined }))).toBe('undefined');
    expect(messageOf(errorWith('message', { value: { a: 1 } }))).toBe('[object Object]');
  });

  test('has the messages of its causes, the nearest three', () => {
    const error = new Error('send', {
      cause: new TypeError('fetch failed', { cause: new Error('ECONNRESET') }),
    });
    expect(messageOf(error)).toBe('send [cause] TypeError: fetch failed [cause] Error: ECONNRESET');
    let deep = new Error('0');
    for (let level = 1; level <= 5; level++) deep = new Error(String(level), { cause: deep });
    expect(messageOf(deep)).toBe('5 [cause] Error: 4 [cause] Error: 3 [cause] Error: 2');
  });

  test('may have a cause that is no error', () => {
    expect(messageOf(new Error('send', { cause: { status: 503 } }))).toBe('send [cause] {"status":503}');
    expect(messageOf(new Error('send', { cause: 'timeout' }))).toBe('send [cause] timeout');
    expect(messageOf(new Error('send', { cause: null }))).toBe('send');
    const named = Object.defineProperty(new Error('x'), 'name', { value: Symbol('s') });
    expect(messageOf(new Error('send', { cause: named }))).toBe('send [cause] Symbol(s): x');
  });

  test('may be its own cause', () => {
    const error = new Error('round');
    error.cause = error;
    expect(messageOf(error)).toBe('round [cause] Error: round [cause] Error: round [cause] Error: round');
  });

  test('that only gathers others has their messages, as the one for a host with several addresses', () => {
    const refused = new AggregateError([new Error('connect ECONNREFUSED ::1'), new Error('and 127.0.0.1')]);
    expect(messageOf(new TypeError('fetch failed', { cause: refused }))).toBe(
      'fetch failed [cause] AggregateError: Error: connect ECONNREFUSED ::1, Error: and 127.0.0.1',
    );
    expect(messageOf(new AggregateError([1], 'its own message'))).toBe('its own message');
  });
});

describe('what is no Error', () => {
  const cyclic: Record<string, unknown> = {};
  cyclic.self = cyclic;

  test.each([
    ['a text', 'no', 'thrown: no'],
    ['nothing', undefined, 'thrown: undefined'],
    ['null', null, 'thrown: null'],
    ['a number', Number.NaN, 'thrown: NaN'],
    ['a bigint', 1n, 'thrown: 1'],
    ['a symbol', Symbol('s'), 'thrown: Symbol(s)'],
    ['an object', { code: 'E1', status: 500 }, 'thrown: {"code":"E1","status":500}'],
    ['an array', [1, 'a'], 'thrown: [1,"a"]'],
    ['an object without prototype', Object.create(null), 'thrown: {}'],
    ['an object that contains itself', cyclic, 'thrown: [object Object]'],
    ['an object that JSON leaves out', { toJSON: () => undefined }, 'thrown: [object Object]'],
    ['an object with a bigint', { id: 1n }, 'thrown: [object Object]'],
    ['errors within', [{ reason: new TypeError('no') }], 'thrown: [{"reason":"TypeError: no"}]'],
  ])('%s is shown', (_what, thrown, message) => {
    expect(describeError(thrown, 2)).toEqual({ attempt: 2, name: 'NonError', message });
  });

  test('a function is shown by its source', () => {
    expect(messageOf(function broken() {})).toMatch(/^thrown: function broken/);
  });
});

describe('what throws when it is looked at', () => {
  const throwing = {
    get: () => {
      throw new Error('in a getter');
    },
  };

  test.each([
    ['a proxy', hostile],
    ['a revoked proxy', revoked()],
    ['an error with a message that throws', errorWith('message', throwing)],
    ['an error with a name that throws', errorWith('name', throwing)],
    ['an error with a stack that throws', errorWith('stack', throwing)],
    ['an error with a cause that throws', errorWith('cause', throwing)],
    ['an error with such a proxy for a cause', new Error('x', { cause: hostile })],
    [
      'an error whose message is an object without prototype',
      errorWith('message', { value: Object.create(null) }),
    ],
    ['an aggregate that contains itself', selfContaining()],
  ])('%s is described all the same', (_what, thrown) => {
    expect(describeError(thrown, 4)).toEqual({
      attempt: 4,
      name: 'NonError',
      message: 'thrown: a value that cannot be read',
    });
  });

  function selfContaining(): AggregateError {
    const errors: unknown[] = [];
    const aggregate = new AggregateError(errors);
    aggregate.errors.push(aggregate);
    return aggregate;
  }
});

describe('whatever is thrown', () => {
  const text = fc.string({ unit: 'binary', maxLength: 12_000, size: 'max' });
  const anything = fc.anything({ withNullPrototype: true, withBigInt: true, withDate: true, withMap: true });
  const anyError = fc
    .record({ message: text, name: text, stack: text, cause: fc.oneof(anything, text) })
    .map(({ message, cause, ...rest }) => Object.assign(new Error(message, { cause }), rest));

  test('becomes a bounded record that jsonb takes', () => {
    fc.assert(
      fc.property(fc.oneof(anything, text, anyError), (thrown) => {
        const record = describeError(thrown, 1);
        expect(record.name.length).toBeLessThanOrEqual(200);
        expect(record.message.length).toBeLessThanOrEqual(2_000);
        expect(record.stack?.length ?? 0).toBeLessThanOrEqual(8_000);
        expect(JSON.stringify(record)).not.toMatch(/\\u0000|\\ud[89a-f]/);
      }),
    );
  });

  test('is cut where it is too long', () => {
    const { message, name, stack } = describeError(
      Object.assign(new Error('m'.repeat(1_000_000)), { name: 'n'.repeat(1_000) }),
      1,
    );
    expect(message).toBe(`${'m'.repeat(1_999)}…`);
    expect(name).toBe(`${'n'.repeat(199)}…`);
    expect(stack).toHaveLength(8_000);
  });
});

describe('storable', () => {
  test('replaces NUL characters and halves of surrogate pairs, and nothing else', () => {
    expect(storable('a\0b\0')).toBe('a\ufffdb\ufffd');
    expect(storable('\ud83d\ude00 \ud83d \ude00 \ude00\ud83d')).toBe('\u{1f600} \ufffd \ufffd \ufffd\ufffd');
    expect(storable('\u{1f600}\n\t\u0001')).toBe('\u{1f600}\n\t\u0001');
  });

  test('does not leave half of a pair where it cuts', () => {
    expect(storable('ab\u{1f600}cd', 4)).toBe('ab\ufffd…');
    expect(storable('ab\u{1f600}', 4)).toBe('ab\u{1f600}');
  });
});

describe("drizzle-orm's query errors", () => {
  const SECRET = 'hunter2';
  const driverError = Object.assign(
    new Error('duplicate key value violates unique constraint "users_pkey"'),
    {
      name: 'PostgresError',
      code: '23505',
    },
  );

  function queryError(cause?: unknown): DrizzleQueryError {
    // A driver may also throw what is no Error.
    return new DrizzleQueryError('insert into users values ($1)', [SECRET], cause as Error | undefined);
  }

  /** Nothing that is stored of it contains the parameter. */
  function expectNoLeak(thrown: unknown): void {
    expect(JSON.stringify(describeError(thrown, 1))).not.toContain(SECRET);
  }

  test('do repeat their parameters, which is why', () => {
    expect(queryError(driverError).message).toContain(SECRET);
    expect(queryError(driverError).stack).toContain(SECRET);
  });

  test("are replaced by the driver's own error", () => {
    expect(describeError(queryError(driverError), 1)).toEqual({
      attempt: 1,
      name: 'PostgresError',
      message: driverError.message,
      stack: driverError.stack,
    });
    expectNoLeak(queryError(driverError));
  });

  test('leak nothing as a cause, at any depth', () => {
    const wrapped = new Error('saving failed', { cause: queryError(driverError) });
    expect(messageOf(wrapped)).toBe(`saving failed [cause] PostgresError: ${driverError.message}`);
    expectNoLeak(wrapped);
    expectNoLeak(
      new Error('a', { cause: new Error('b', { cause: new Error('c', { cause: queryError() }) }) }),
    );
  });

  test('leak nothing without an Error for a cause', () => {
    expectNoLeak(queryError());
    expectNoLeak(queryError('connection closed'));
    expect(messageOf(queryError('connection closed'))).toBe('thrown: connection closed');
  });

  test('leak nothing inside of each other, even in a circle', () => {
    expectNoLeak(queryError(queryError(queryError(driverError))));
    expect(messageOf(queryError(queryError(driverError)))).toBe(driverError.message);
    const circle = queryError();
    circle.cause = circle;
    expectNoLeak(circle);
  });

  test('leak nothing inside something that is no Error', () => {
    expectNoLeak({ status: 'rejected', reason: queryError(driverError) });
    expectNoLeak([queryError()]);
    expectNoLeak(new AggregateError([queryError(driverError), queryError()]));
    expectNoLeak(new Error('x', { cause: [queryError()] }));
  });

  test('are told from errors of others that happen to have the same properties', () => {
    class SearchError extends Error {
      override name = 'SearchError';
      readonly query = 'shoes';
      readonly params = [1];
    }
    const error = new SearchError('no index', { cause: new Error('404') });
    expect(describeError(error, 1)).toMatchObject({
      name: 'SearchError',
      message: 'no index [cause] Error: 404',
    });
  });
});
