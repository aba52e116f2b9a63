import fc from 'fast-check';
import { type Ending, KIND_WITHOUT_RESULT } from './job-model.ts';

/** Which of the things that there are: taken modulo their number, so that every number is one of them. */
const which = fc.nat(1_000);

const queue = fc.constantFrom('mail', 'mail', 'mail', 'slow');
const kind = fc.constantFrom('kept', 'kept', KIND_WITHOUT_RESULT);
const bothKinds = ['kept', KIND_WITHOUT_RESULT];

const newJob = fc.record({
  queue,
  kind,
  uniqueKey: fc.constantFrom(undefined, undefined, 'k1', 'k1', 'k2'),
  priority: fc.constantFrom(0, 5, 9),
  maxAttempts: fc.constantFrom(1, 1, 2, 3),
  /** Now, or so many seconds after a time long ago or far ahead. */
  due: fc.oneof(
    { weight: 3, arbitrary: fc.constant('now' as const) },
    { weight: 3, arbitrary: fc.record({ longAgo: fc.nat(5) }) },
    { weight: 1, arbitrary: fc.record({ farAhead: fc.nat(5) }) },
  ),
});

const ending = fc.constantFrom<Ending>(
  'complete',
  'fail',
  'fail',
  'fail for good',
  'fail for good',
  'snooze',
  'cancel',
  'interrupt',
);
const endings = fc.array(ending, { minLength: 2, maxLength: 5 });

const claim = fc.record({
  worker: which,
  /** By a worker of the past, which was declared gone and does not know it yet. */
  byOneOfThePast: fc.constantFrom(false, false, false, true),
  queue,
  kinds: fc.constantFrom(bothKinds, bothKinds, ['kept']),
  limit: fc.integer({ min: 1, max: 5 }),
  sweep: fc.boolean(),
});

/** Everything that can happen to jobs, each with what it happens to. */
const happenings = {
  enqueue: newJob,
  enqueueMany: fc.record({ queue, kind, entries: fc.array(newJob, { minLength: 2, maxLength: 4 }) }),
  claim,
  /** Two workers, one after the other. */
  claimTwice: claim,
  settle: fc.record({ attempt: which, ending }),
  /** What a worker has in a queue, at once. */
  settleTogether: fc.record({ attempt: which, endings }),
  /** Any attempt that there ever was, settled or lost long ago. */
  settleLate: fc.record({ attempt: which, ending }),
  completeInTransaction: fc.record({ attempt: which, commit: fc.boolean() }),
  cancel: fc.record({ job: which }),
  redriveOne: fc.record({ job: which, discarded: fc.boolean() }),
  redriveMany: fc.record({
    queue: fc.constantFrom(undefined, 'mail', 'slow'),
    limit: fc.constantFrom(undefined, undefined, 1, 2),
  }),
  /** A worker's row goes and another worker takes its place; then, perhaps, somebody looks for what it held: even itself. */
  die: fc.record({ worker: which, sweep: fc.option(claim, { nil: undefined }), byItself: fc.boolean() }),
  /** Any worker that ever lived shows itself. */
  beat: fc.record({ worker: which }),
  release: fc.record({ worker: which, queue, except: which }),
  makeDue: fc.record({ job: which, longAgo: fc.nat(5) }),
  look: fc.record({ job: which, page: fc.integer({ min: 1, max: 5 }) }),
  prune: fc.record({}),
};

/** What each thing happens to. */
export type Happenings = {
  [K in keyof typeof happenings]: (typeof happenings)[K] extends fc.Arbitrary<infer T> ? T : never;
};

/** How often each thing happens beside the others. */
const weights: Readonly<Record<keyof Happenings, number>> = {
  enqueue: 20,
  enqueueMany: 3,
  claim: 20,
  claimTwice: 6,
  settle: 16,
  settleTogether: 8,
  settleLate: 5,
  completeInTransaction: 6,
  cancel: 8,
  redriveOne: 4,
  redriveMany: 7,
  die: 5,
  beat: 4,
  release: 6,
  makeDue: 8,
  look: 3,
  prune: 2,
};

/** One thing that happens. */
export type Step = {
  [K in keyof Happenings]: { readonly happens: K; readonly to: Happenings[K] };
}[keyof Happenings];

export const step: fc.Arbitrary<Step> = fc.oneof(
  ...Object.entries(happenings).map(([happens, to]) => ({
    weight: weights[happens as keyof Happenings],
    // The key and its value belong together, which the entries of an object do not say.
    arbitrary: (to as fc.Arbitrary<unknown>).map((to) => ({ happens, to }) as Step),
  })),
);
