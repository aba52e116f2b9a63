import fc from 'fast-check';
import { type Ending, KIND_WITHOUT_RESULT } from './job-model.ts';
import { DAY_MS } from './schedule-model.ts';

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
  'interrupt',
  'wait',
  'wait',
  'wait for a time',
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
  /** Which begin at once: so many of the first; `undefined`: all. */
  beginning: fc.constantFrom(
    undefined,
    0 as const,
    0 as const,
    1 as const,
    { atMost: 3, provenKinds: bothKinds },
    { atMost: 3, provenKinds: ['kept'] },
  ),
});

const schedule = fc.record({
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
const fire = fc.record({
  worker: which,
  kinds: fc.constantFrom(bothKinds, bothKinds, ['kept']),
  declares: fc.uniqueArray(schedule, { maxLength: 2, selector: ({ name }) => name }),
});

/** What can happen to jobs in one go, each with what it happens to. */
const atOnce = {
  enqueue: newJob,
  enqueueMany: fc.record({ queue, kind, entries: fc.array(newJob, { minLength: 2, maxLength: 4 }) }),
  claim,
  /** Two workers, one after the other. */
  claimTwice: claim,
  /** What a worker has in a queue, or believes to have, begins; the answer may be lost, and it is said again. */
  begin: fc.record({ attempt: which, late: fc.boolean(), twice: fc.boolean() }),
  /** The same by a statement that waits for no lock. */
  beginFree: fc.record({ attempt: which }),
  settle: fc.record({ attempt: which, ending }),
  /** What a worker has in a queue, at once. */
  settleTogether: fc.record({ attempt: which, endings }),
  /** The same by statements that wait for no lock. */
  settleFree: fc.record({ attempt: which, endings }),
  /** Any attempt that there ever was, settled or lost long ago. */
  settleLate: fc.record({ attempt: which, ending }),
  /** Any job, or one that waits and has a key. */
  cancel: fc.record({ job: which, keyed: fc.boolean() }),
  redriveOne: fc.record({ job: which, discarded: fc.boolean() }),
  redriveMany: fc.record({
    queue: fc.constantFrom(undefined, 'mail', 'slow'),
    limit: fc.constantFrom(undefined, undefined, 1, 2),
  }),
  /** A worker's row goes and another worker takes its place; then, perhaps, somebody looks for what it held: even itself. */
  die: fc.record({ worker: which, sweep: fc.option(claim, { nil: undefined }), byItself: fc.boolean() }),
  /** Any worker that ever lived shows itself. */
  beat: fc.record({ worker: which }),
  /** But for a job that the worker knows of: from its claim, or from an earlier one that it has lost. */
  release: fc.record({ worker: which, queue, except: which, earlier: fc.boolean() }),
  /** What jobs wait for has ended: of some that wait, or any. */
  unpark: fc.record({ jobs: fc.array(which, { minLength: 1, maxLength: 3 }), parked: fc.boolean() }),
  makeDue: fc.record({ job: which, longAgo: fc.nat(5) }),
  look: fc.record({ job: which, page: fc.integer({ min: 1, max: 5 }) }),
  prune: fc.record({}),
  setSchedule: fc.record({ schedule }),
  changeSchedule: fc.record({
    schedule: which,
    change: fc.constantFrom('pause', 'resume', 'resume', 'remove'),
  }),
  runSchedule: fc.record({ schedule: which }),
  /** As if no worker had looked for so many days. */
  missTicks: fc.record({ schedule: which, days: fc.integer({ min: 1, max: 4 }) }),
  fire,
};

type ValuesOf<T> = { [K in keyof T]: T[K] extends fc.Arbitrary<infer TValue> ? TValue : never };

type StepOf<T> = { [K in keyof T]: { readonly happens: K; readonly to: T[K] } }[keyof T];

type AtOnce = ValuesOf<typeof atOnce>;

/** One thing that happens in one go. */
export type SingleStep = StepOf<AtOnce>;

/** How often each of them happens beside the others. */
const weights: Readonly<Record<keyof AtOnce, number>> = {
  enqueue: 20,
  enqueueMany: 3,
  claim: 20,
  claimTwice: 6,
  begin: 8,
  beginFree: 3,
  settle: 16,
  settleTogether: 8,
  settleFree: 5,
  settleLate: 5,
  cancel: 8,
  redriveOne: 4,
  redriveMany: 7,
  die: 5,
  beat: 4,
  release: 6,
  unpark: 8,
  makeDue: 8,
  look: 3,
  prune: 2,
  setSchedule: 6,
  changeSchedule: 4,
  runSchedule: 2,
  missTicks: 4,
  fire: 6,
};

const single = stepsOf(atOnce, weights) as fc.Arbitrary<SingleStep>;

/** Those that wait for nobody's lock, so that they can happen while a transaction is open. */
const { claimTwice, settleFree, beginFree, cancel, look, prune, die, beat } = atOnce;
const patient = stepsOf(
  { claim, claimTwice, settleFree, beginFree, cancel, look, prune, die, beat },
  // Whoever cancels a locked job waits a moment for the lock to go.
  { claim: 8, claimTwice: 2, settleFree: 3, beginFree: 2, cancel: 1, look: 2, prune: 1, die: 2, beat: 2 },
) as fc.Arbitrary<SingleStep>;

/** What comes in between two statements of one operation. */
const between = fc.array(single, { maxLength: 3 });
const betweenPatient = fc.array(patient, { maxLength: 3 });
/** When jobs were put back: often somebody claims them. */
const betweenClaims = fc.array(
  fc.oneof(
    { weight: 1, arbitrary: single },
    { weight: 1, arbitrary: claim.map((to): SingleStep => ({ happens: 'claim', to: { ...to, limit: 5 } })) },
  ),
  { maxLength: 3 },
);
/** While a key stands in the way: often somebody ends the job that has it. */
const betweenKeyed = fc.array(
  fc.oneof(
    { weight: 2, arbitrary: single },
    {
      weight: 1,
      arbitrary: which.map((job): SingleStep => ({ happens: 'cancel', to: { job, keyed: true } })),
    },
  ),
  { maxLength: 3 },
);

/** While a schedule is due: often somebody changes it, or another worker fires it. */
const betweenSchedules = fc.array(
  fc.oneof(
    { weight: 1, arbitrary: single },
    {
      weight: 1,
      arbitrary: stepsOf(
        {
          setSchedule: atOnce.setSchedule,
          changeSchedule: atOnce.changeSchedule,
          missTicks: atOnce.missTicks,
          fire,
        },
        { setSchedule: 2, changeSchedule: 2, missTicks: 1, fire: 2 },
      ) as fc.Arbitrary<SingleStep>,
    },
  ),
  { maxLength: 3 },
);

/** What takes several statements, with what happens in between, by the fault point. */
const interrupted = {
  enqueueWhile: fc.record({ job: newJob, refused: betweenKeyed, nobodyStands: between }),
  cancelWhile: fc.record({ job: which, found: between, notWaiting: between }),
  /** The answer to one of the statements may be lost; then what it was about is written again. */
  settleWhile: fc.record({
    attempt: which,
    endings,
    finished: between,
    written: betweenClaims,
    parked: betweenClaims,
    answerLost: fc.constantFrom(
      'finished' as const,
      'written' as const,
      'written' as const,
      'parked' as const,
      ...new Array<undefined>(12).fill(undefined),
    ),
  }),
  /** The jobs are claimed, and the answer is lost. */
  claimLost: fc.record({ claim, answered: between }),
  /** A transaction of the app locks a job's row for other work: often of one that is held. */
  lockRow: fc.record({ job: which, held: fc.boolean(), commit: fc.boolean(), locked: betweenPatient }),
  /**
   * A worker looks whether it is still registered, and when it is not, what it has lost. In between, others may claim that, and
   * before it hears the answer, it may claim more.
   */
  comeBack: fc.record({ worker: which, returned: betweenClaims, asked: between }),
  /** While what a worker has found due is not fired yet. */
  fireWhile: fc.record({ by: fire, found: betweenSchedules }),
  completeInTransaction: fc.record({ attempt: which, commit: fc.boolean(), finished: betweenPatient }),
  runNextWhile: fc.record({
    queue,
    kinds: fc.constantFrom(bothKinds, ['kept']),
    ending,
    ran: betweenPatient,
  }),
};

/** What each thing happens to. */
export type Happenings = AtOnce & ValuesOf<typeof interrupted>;

/** How each thing is done, to the database and to the model. */
export type Doings = { readonly [K in keyof Happenings]: (to: Happenings[K]) => Promise<void> };

/** One thing that happens. */
export type Step = StepOf<Happenings>;

export const step: fc.Arbitrary<Step> = stepsOf(
  { ...atOnce, ...interrupted },
  {
    ...weights,
    enqueueWhile: 10,
    cancelWhile: 7,
    settleWhile: 10,
    claimLost: 5,
    lockRow: 6,
    comeBack: 4,
    fireWhile: 6,
    completeInTransaction: 7,
    runNextWhile: 7,
  },
) as fc.Arbitrary<Step>;

/** The key and its value belong together, which the entries of an object do not say; so callers say of what they are. */
function stepsOf<T extends Readonly<Record<string, fc.Arbitrary<unknown>>>>(
  happenings: T,
  weights: Readonly<Record<keyof T, number>>,
): fc.Arbitrary<{ readonly happens: keyof T; readonly to: unknown }> {
  return fc.oneof(
    ...Object.entries(happenings).map(([happens, to]) => ({
      weight: weights[happens as keyof T],
      arbitrary: to.map((to) => ({ happens: happens as keyof T, to })),
    })),
  );
}
