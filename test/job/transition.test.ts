import { NonRetryableError, WorkerLostError } from 'drizzle-queue';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type Backoff, fixedBackoff } from '../../src/core/job/backoff.ts';
import type { Outcome } from '../../src/core/job/outcome.ts';
import {
  type AttemptFacts,
  MAX_BACKOFF_MS,
  type Transition,
  transitionFor,
  verdictOn,
} from '../../src/core/job/transition.ts';

class PaymentRefused extends NonRetryableError {
  override name = 'PaymentRefused';
}

const MAX_ATTEMPTS = 3;
const BACKOFF_MS = 1_234;

/** Where an attempt can stand among those that its job has. Beyond: the workers of all the others have died. */
const places = { 'attempts left': 1, 'last attempt': MAX_ATTEMPTS, 'beyond the last': MAX_ATTEMPTS + 1 };

/** Every kind of outcome, with what it must become at every place. */
const outcomes: Record<
  string,
  {
    readonly outcome: Outcome;
    readonly expected: (place: keyof typeof places, facts: AttemptFacts) => object;
  }
> = {
  completed: {
    outcome: { type: 'completed', output: '{"a":1}' },
    expected: (_place, { keepResult }) => ({
      type: 'finish',
      state: 'completed',
      output: '{"a":1}',
      error: null,
      keepResult,
    }),
  },
  'failed, retryable': {
    outcome: { type: 'failed', error: new TypeError('no') },
    expected: (place, { attempt }) =>
      place === 'attempts left'
        ? {
            type: 'reschedule',
            delayMs: BACKOFF_MS,
            attempt,
            error: { attempt, name: 'TypeError', message: 'no', stack: expect.any(String) },
          }
        : discarded(attempt, 'TypeError', 'no'),
  },
  'failed, NonRetryableError': {
    outcome: { type: 'failed', error: new NonRetryableError('never') },
    expected: (_place, { attempt }) => discarded(attempt, 'NonRetryableError', 'never'),
  },
  'failed, subclass of NonRetryableError': {
    outcome: { type: 'failed', error: new PaymentRefused('never') },
    expected: (_place, { attempt }) => discarded(attempt, 'PaymentRefused', 'never'),
  },
  snoozed: {
    outcome: { type: 'snoozed', delayMs: 50 },
    expected: (_place, { attempt }) => ({
      type: 'reschedule',
      delayMs: 50,
      attempt: attempt - 1,
      error: null,
    }),
  },
  waiting: {
    outcome: { type: 'waiting', delayMs: 50 },
    expected: (_place, { attempt }) => ({
      type: 'park',
      delayMs: 50,
      attempt: attempt - 1,
      error: null,
    }),
  },
  cancelled: {
    outcome: { type: 'cancelled', reason: 'gone' },
    expected: (_place, { attempt }) => ({
      type: 'finish',
      state: 'cancelled',
      output: null,
      error: { attempt, name: 'Cancelled', message: 'gone' },
      keepResult: true,
    }),
  },
  interrupted: {
    outcome: { type: 'interrupted' },
    expected: (_place, { attempt }) => ({
      type: 'reschedule',
      delayMs: null,
      attempt: attempt - 1,
      error: null,
    }),
  },
};

function discarded(attempt: number, name: string, message: string): object {
  return {
    type: 'finish',
    state: 'discarded',
    output: null,
    error: { attempt, name, message, stack: expect.any(String) },
    // A discarded job leaves a result whatever its definition says: somebody will ask.
    keepResult: true,
  };
}

function facts(overrides: Partial<AttemptFacts> = {}): AttemptFacts {
  return {
    attempt: 1,
    maxAttempts: MAX_ATTEMPTS,
    backoff: fixedBackoff(BACKOFF_MS),
    keepResult: true,
    cancelReason: undefined,
    ...overrides,
  };
}

describe('the transition table', () => {
  const cases = Object.keys(outcomes).flatMap((outcome) =>
    Object.keys(places).flatMap((place) =>
      ([true, 'outcome', false] as const).map((keepResult) => ({ outcome, place, keepResult })),
    ),
  );

  test.each(cases)('$outcome, $place, keepResult $keepResult', ({ outcome, place, keepResult }) => {
    const row = outcomes[outcome];
    const given = facts({ attempt: places[place as keyof typeof places], keepResult });
    if (row === undefined) throw new Error(outcome);
    expect(transitionFor(row.outcome, given)).toEqual(row.expected(place as keyof typeof places, given));
  });

  test('a job with a single attempt is discarded by its first failure', () => {
    const transition = transitionFor({ type: 'failed', error: new Error('no') }, facts({ maxAttempts: 1 }));
    expect(transition).toEqual(discarded(1, 'Error', 'no'));
  });

  test('a job that has killed all its workers is discarded with that reason', () => {
    const error = new WorkerLostError('resize', 7, MAX_ATTEMPTS);
    const transition = transitionFor({ type: 'failed', error }, facts({ attempt: MAX_ATTEMPTS + 1 }));
    expect(transition).toEqual(discarded(MAX_ATTEMPTS + 1, 'WorkerLostError', error.message));
  });

  test('what cannot even be looked at is a failure like any other', () => {
    const { proxy, revoke } = Proxy.revocable({}, {});
    revoke();
    expect(() => proxy instanceof NonRetryableError).toThrow();
    const transition = transitionFor({ type: 'failed', error: proxy }, facts());
    expect(transition).toMatchObject({
      type: 'reschedule',
      delayMs: BACKOFF_MS,
      error: { name: 'NonError' },
    });
  });

  test('the reason of a cancel is made storable', () => {
    const transition = transitionFor({ type: 'cancelled', reason: 'a\0b\ud800' }, facts());
    expect(transition.error?.message).toBe('a\ufffdb\ufffd');
  });
});

describe('a request for the end of the job, and a transaction of complete(tx)', () => {
  const thrown = new TypeError('no');
  const given: Record<Outcome['type'], Outcome> = {
    completed: { type: 'completed', output: '1' },
    committed: { type: 'committed' },
    failed: { type: 'failed', error: thrown },
    snoozed: { type: 'snoozed', delayMs: 50 },
    waiting: { type: 'waiting', delayMs: null },
    cancelled: { type: 'cancelled', reason: 'by the handler' },
    interrupted: { type: 'interrupted' },
  };
  const notCommitted = { message: expect.stringContaining('did not commit') };
  const asked = {
    type: 'finish',
    state: 'cancelled',
    error: { attempt: 1, name: 'Cancelled', message: 'asked' },
  };
  const table: [outcome: Outcome['type'], without: object, withRequest: object][] = [
    [
      'completed',
      { type: 'finish', state: 'completed' },
      { type: 'finish', state: 'completed', output: '1' },
    ],
    ['committed', { type: 'reschedule', attempt: 1, error: notCommitted }, asked],
    ['failed', { type: 'reschedule', attempt: 1, error: { name: 'TypeError' } }, asked],
    ['snoozed', { type: 'reschedule', attempt: 0, delayMs: 50 }, asked],
    ['waiting', { type: 'park', attempt: 0, delayMs: null }, asked],
    [
      'cancelled',
      { state: 'cancelled', error: { message: 'by the handler' } },
      { state: 'cancelled', error: { message: 'by the handler' } },
    ],
    ['interrupted', { type: 'reschedule', attempt: 0, delayMs: null }, asked],
  ];

  test.each(table)('%s', (outcome, without, withRequest) => {
    expect(transitionFor(given[outcome], facts())).toMatchObject(without);
    expect(transitionFor(given[outcome], facts({ cancelReason: 'asked' }))).toMatchObject(withRequest);
  });

  test('a request wins over a discard, too', () => {
    for (const error of [new NonRetryableError('never'), thrown]) {
      const last = facts({ attempt: MAX_ATTEMPTS, cancelReason: 'asked' });
      expect(transitionFor({ type: 'failed', error }, last)).toMatchObject({ state: 'cancelled' });
    }
  });

  test('an empty reason is a request', () => {
    expect(transitionFor(given.failed, facts({ cancelReason: '' }))).toMatchObject({ state: 'cancelled' });
  });

  test('a verdict is final: judged again it is the same', () => {
    for (const outcome of Object.values(given)) {
      for (const cancelReason of [undefined, 'asked']) {
        const verdict = verdictOn(outcome, { cancelReason });
        expect(verdictOn(verdict, { cancelReason })).toBe(verdict);
        expect(verdict.type).not.toBe('committed');
      }
    }
  });
});

describe('the backoff of a failed attempt', () => {
  /** The delay after a failed first attempt. */
  function delayMs(backoff: unknown): number {
    const outcome: Outcome = { type: 'failed', error: new Error('no') };
    const transition = transitionFor(outcome, facts({ backoff: backoff as Backoff }));
    if (transition.type !== 'reschedule' || transition.delayMs === null)
      throw new Error(`not rescheduled with a delay: ${JSON.stringify(transition)}`);
    return transition.delayMs;
  }

  test('is told the attempt and what was thrown', () => {
    const asked: unknown[] = [];
    const thrown = new Error('no');
    const backoff: Backoff = (...args) => asked.push(args);
    transitionFor({ type: 'failed', error: thrown }, facts({ attempt: 2, backoff }));
    expect(asked).toEqual([[2, thrown]]);
  });

  test('is not asked when the job is discarded', () => {
    const backoff: Backoff = () => expect.fail('asked');
    const error = new NonRetryableError('never');
    expect(transitionFor({ type: 'failed', error }, facts({ backoff })).type).toBe('finish');
  });

  test('is rounded to whole milliseconds', () => {
    expect(delayMs(() => 10.6)).toBe(11);
    expect(delayMs(() => 0.2)).toBe(0);
    expect(delayMs(() => 0)).toBe(0);
  });

  test('is at most a year', () => {
    expect(delayMs(() => MAX_BACKOFF_MS)).toBe(MAX_BACKOFF_MS);
    expect(delayMs(() => Number.POSITIVE_INFINITY)).toBe(MAX_BACKOFF_MS);
    expect(delayMs(() => 1e300)).toBe(MAX_BACKOFF_MS);
  });

  test.each([
    ['NaN', () => Number.NaN],
    ['a negative number', () => -1],
    ['minus infinity', () => Number.NEGATIVE_INFINITY],
    ['a text', () => '5000'],
    ['nothing', () => undefined],
    ['a promise', async () => 5],
    ['a bigint', () => 5n],
    [
      'an error that it throws',
      () => {
        throw new Error('in the backoff');
      },
    ],
    ['the error that there is no function', 5],
  ])('falls back to the default for %s', (_what, backoff) => {
    const delays = Array.from({ length: 200 }, () => delayMs(backoff));
    // The default after a first attempt: 0 to 1,000 ms, at random.
    for (const delay of delays) expect(delay).toBeGreaterThanOrEqual(0);
    for (const delay of delays) expect(delay).toBeLessThanOrEqual(1_000);
    expect(new Set(delays).size).toBeGreaterThan(20);
  });
});

describe('whatever the outcome', () => {
  const anyBackoff = fc.oneof(
    fc.anything().map((answer) => (() => answer) as unknown as Backoff),
    fc.anything().map((thrown): Backoff => {
      return () => {
        throw thrown;
      };
    }),
  );
  const anyFacts = fc.record({
    attempt: fc.integer({ min: 1, max: 10_001 }),
    maxAttempts: fc.integer({ min: 1, max: 10_000 }),
    backoff: anyBackoff,
    keepResult: fc.constantFrom(true, 'outcome' as const, false),
  });
  const anyThrown = fc.oneof(
    fc.anything(),
    fc.string().map((message) => new Error(message)),
    fc.string().map((message) => new PaymentRefused(message)),
  );
  const anyOutcome: fc.Arbitrary<Outcome> = fc.oneof(
    fc.record({ type: fc.constant('completed' as const), output: fc.json() }),
    fc.record({ type: fc.constant('failed' as const), error: anyThrown }),
    fc.record({ type: fc.constant('snoozed' as const), delayMs: fc.nat() }),
    fc.record({ type: fc.constant('waiting' as const), delayMs: fc.option(fc.nat()) }),
    fc.record({ type: fc.constant('cancelled' as const), reason: fc.string() }),
    fc.record({ type: fc.constant('interrupted' as const) }),
  );

  function always(holds: (outcome: Outcome, given: AttemptFacts, transition: Transition) => void): void {
    fc.assert(
      fc.property(anyOutcome, anyFacts, (outcome, given) =>
        holds(outcome, given, transitionFor(outcome, given)),
      ),
      { numRuns: 1_000 },
    );
  }

  test('a job that stays has an attempt left', () => {
    always((outcome, { attempt, maxAttempts }, transition) => {
      if (transition.type !== 'reschedule' || attempt > maxAttempts) return;
      expect(transition.attempt).toBeLessThanOrEqual(maxAttempts);
      if (outcome.type === 'failed') expect(transition.attempt).toBeLessThan(maxAttempts);
    });
  });

  test('a snooze and an interruption give the attempt back, a failure spends it, and nothing else reschedules', () => {
    always((outcome, { attempt }, transition) => {
      if (outcome.type === 'snoozed' || outcome.type === 'interrupted') {
        expect(transition).toMatchObject({ type: 'reschedule', attempt: attempt - 1, error: null });
      } else if (outcome.type === 'failed') {
        if (transition.type === 'reschedule') expect(transition.attempt).toBe(attempt);
        expect(transition.error?.attempt).toBe(attempt);
      } else if (outcome.type === 'waiting') {
        expect(transition).toMatchObject({ type: 'park', delayMs: outcome.delayMs, attempt: attempt - 1 });
      } else {
        expect(transition.type).toBe('finish');
      }
    });
  });

  test('a delay is a whole number of milliseconds from 0 to a year; only an interruption has none', () => {
    always((outcome, _facts, transition) => {
      if (transition.type !== 'reschedule') return;
      if (outcome.type === 'interrupted') expect(transition.delayMs).toBeNull();
      else expect(Number.isInteger(transition.delayMs)).toBe(true);
      expect(transition.delayMs ?? 0).toBeGreaterThanOrEqual(0);
      expect(transition.delayMs ?? 0).toBeLessThanOrEqual(MAX_BACKOFF_MS);
    });
  });

  test('a job that was not completed leaves a whole result, and only a completed one has an output', () => {
    always((outcome, { keepResult }, transition) => {
      if (transition.type !== 'finish') return;
      expect(transition.keepResult).toBe(outcome.type === 'completed' ? keepResult : true);
      expect(transition.output !== null).toBe(transition.state === 'completed');
      expect(transition.error === null).toBe(transition.state === 'completed');
    });
  });

  test('the same outcome gives the same transition: it reads no clock and keeps no state', () => {
    fc.assert(
      fc.property(anyOutcome, anyFacts, (outcome, given) => {
        const settled = { ...given, backoff: fixedBackoff(BACKOFF_MS) };
        expect(transitionFor(outcome, settled)).toEqual(transitionFor(outcome, settled));
      }),
    );
  });
});

test('no delay goes beyond the deadline of a job', () => {
  const delayOf = (outcome: Outcome, untilDeadlineMs: number | undefined) => {
    const backoff = fixedBackoff(BACKOFF_MS);
    const facts = { attempt: 1, maxAttempts: 3, backoff, keepResult: true, untilDeadlineMs } as const;
    return Object(transitionFor(outcome, facts)).delayMs;
  };
  const failed = { type: 'failed', error: new Error('failed') } as const;
  expect(delayOf(failed, undefined)).toBe(BACKOFF_MS);
  expect(delayOf(failed, BACKOFF_MS + 1)).toBe(BACKOFF_MS);
  expect(delayOf(failed, 100.5)).toBe(101);
  expect(delayOf(failed, -5)).toBe(0);
  expect(delayOf({ type: 'snoozed', delayMs: 500 }, 100)).toBe(100);
  expect(delayOf({ type: 'waiting', delayMs: null }, 100)).toBe(100);
  expect(delayOf({ type: 'waiting', delayMs: null }, undefined)).toBe(null);
});
