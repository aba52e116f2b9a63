import fc from 'fast-check';
import { type Ending, KIND_OF_OUTCOMES, KIND_WITHOUT_RESULT } from './model-job.ts';
import { DAY_MS } from './schedule-model.ts';

export const HOUR_MS = 3_600_000;

/** Which of the things that there are: taken modulo their number, so that every number is one of them. */
export const which = fc.nat(1_000);

export const queue = fc.constantFrom('mail', 'mail', 'mail', 'slow');
export const kind = fc.constantFrom('kept', 'kept', KIND_OF_OUTCOMES, KIND_WITHOUT_RESULT);
export const allKinds = ['kept', KIND_OF_OUTCOMES, KIND_WITHOUT_RESULT];

export const newJob = fc.record({
  queue,
  kind,
  uniqueKey: fc.constantFrom(undefined, undefined, 'k1', 'k1', 'k2'),
  priority: fc.constantFrom(0, 5, 9),
  maxAttempts: fc.constantFrom(1, 1, 2, 3),
  /** Heeded where the queue has groups. */
  group: fc.constantFrom(undefined, 'a', 'a', 'b', 'c'),
  cost: fc.constantFrom(undefined, undefined, 1, 2, 7),
  /** Now, or so many seconds after a time long ago or far ahead. */
  due: fc.oneof(
    { weight: 3, arbitrary: fc.constant('now' as const) },
    { weight: 3, arbitrary: fc.record({ longAgo: fc.nat(5) }) },
    { weight: 1, arbitrary: fc.record({ farAhead: fc.nat(5) }) },
  ),
});

export const ending = fc.constantFrom<Ending>(
  'complete',
  'fail',
  'fail',
  'fail for good',
  'fail for good',
  'snooze',
  'cancel',
  'interrupt',
  'interrupt',
  'wait',
  'wait',
  'wait for a time',
);
export const endings = fc.array(ending, { minLength: 2, maxLength: 5 });

export const claim = fc.record({
  worker: which,
  /** By a worker of the past, which was declared gone and does not know it yet. */
  byOneOfThePast: fc.constantFrom(false, false, false, true),
  queue,
  kinds: fc.constantFrom(allKinds, allKinds, ['kept']),
  limit: fc.integer({ min: 1, max: 5 }),
  sweep: fc.boolean(),
  /** Of groups: whether all notes are folded in before. */
  folds: fc.boolean(),
  /** Which begin at once: so many of the first; `undefined`: all. */
  beginning: fc.constantFrom(
    undefined,
    0 as const,
    0 as const,
    1 as const,
    { atMost: 3, provenKinds: allKinds },
    { atMost: 3, provenKinds: ['kept'] },
  ),
});

export const schedule = fc.record({
  name: fc.constantFrom('s1', 's2'),
  queue,
  kind,
  priority: fc.constantFrom(0, 5, 9),
  maxAttempts: fc.constantFrom(1, 2, 3),
  everyMs: fc.constantFrom(DAY_MS, DAY_MS, 2 * DAY_MS),
  catchUp: fc.constantFrom('latest', 'all', 'all', 'none'),
  overlap: fc.boolean(),
});

/** A worker looks, which may declare some itself. */
export const fire = fc.record({
  worker: which,
  kinds: fc.constantFrom(allKinds, allKinds, ['kept']),
  declares: fc.uniqueArray(schedule, { maxLength: 2, selector: ({ name }) => name }),
});

/** What an enqueue does where its key is taken. */
export const rule = fc.constantFrom(
  'debounce' as const,
  'debounce with a longest wait' as const,
  'replace' as const,
  'replace, but for the time' as const,
  'unique while it waits' as const,
  'unique for a time' as const,
  'throttle' as const,
  'throttle' as const,
);

/** A limit, and what it is set to; what the queue does not heed is left out of it. */
export const limit = fc.record({
  of: fc.constantFrom(
    'queue' as const,
    'kind' as const,
    '*' as const,
    'a' as const,
    'a' as const,
    'b' as const,
  ),
  /** `null` removes what was set. */
  override: fc.constantFrom(
    null,
    null,
    { concurrency: 1 },
    { concurrency: 3 },
    { weight: 3 },
    { rate: { limit: 1, perMs: HOUR_MS } },
    { rate: { limit: 5, perMs: HOUR_MS } },
    { rate: { limit: 4, perMs: 2 * HOUR_MS } },
    { rate: { limit: 3, perMs: HOUR_MS / 2 } },
    { concurrency: 2, weight: 2, rate: { limit: 3, perMs: HOUR_MS } },
  ),
});
