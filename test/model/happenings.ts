import fc from 'fast-check';
import {
  allKinds,
  claim,
  ending,
  endings,
  fire,
  kind,
  limit,
  newJob,
  queue,
  rule,
  schedule,
  which,
} from './choices.ts';

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
  /** By a rule for its key; often the same again at once, since a key in a queue of a kind is seldom met twice by chance. */
  enqueueByRule: fc.record({
    ...{ job: newJob, rule, key: fc.constantFrom('k1', 'k1', 'k1', 'k2') },
    again: fc.boolean(),
  }),
  /** By a process that declares no limits. */
  enqueueUnaware: newJob,
  timePasses: fc.record({ minutes: fc.constantFrom(4, 25, 61, 121, 200) }),
  setLimit: fc.record({ limit, commit: fc.constantFrom(true, true, false) }),
  /** Any group, or one that is stopped: these are few. */
  unblock: fc.record({
    group: fc.constantFrom('a', 'b', 'c', '-'),
    stopped: fc.constantFrom(true, true, false),
  }),
  /** As workers do now and then. */
  lookAfterGroups: fc.record({ forgotten: fc.constantFrom(false, false, true) }),
  lookAtLimits: fc.record({ page: fc.integer({ min: 1, max: 3 }) }),
};

type ValuesOf<T> = { [K in keyof T]: T[K] extends fc.Arbitrary<infer TValue> ? TValue : never };

type StepOf<T> = { [K in keyof T]: { readonly happens: K; readonly to: T[K] } }[keyof T];

type AtOnce = ValuesOf<typeof atOnce>;

/** One thing that happens in one go. */
export type SingleStep = StepOf<AtOnce>;

type Weights = Readonly<Record<keyof AtOnce, number>>;

/** How often each of them happens beside the others. */
const weights: Weights = {
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
  enqueueByRule: 8,
  enqueueUnaware: 0,
  timePasses: 0,
  setLimit: 0,
  unblock: 0,
  lookAfterGroups: 0,
  lookAtLimits: 0,
};

/** The same where queues have groups. */
const groupWeights: Weights = {
  ...weights,
  claim: 40,
  claimTwice: 12,
  enqueue: 24,
  redriveMany: 12,
  beat: 6,
  setSchedule: 4,
  changeSchedule: 1,
  runSchedule: 1,
  missTicks: 4,
  fire: 5,
  enqueueUnaware: 3,
  timePasses: 14,
  setLimit: 9,
  unblock: 12,
  lookAfterGroups: 4,
  lookAtLimits: 8,
};

/** Those that wait for nobody's lock, so that they can happen while a transaction is open. */
const { claimTwice, settleFree, beginFree, cancel, look, prune, die, beat } = atOnce;
const patient = stepsOf(
  { claim, claimTwice, settleFree, beginFree, cancel, look, prune, die, beat },
  // Whoever cancels a locked job waits a moment for the lock to go.
  { claim: 8, claimTwice: 2, settleFree: 3, beginFree: 2, cancel: 2, look: 2, prune: 1, die: 2, beat: 2 },
) as fc.Arbitrary<SingleStep>;

/** What takes several statements, with what happens in between, by the fault point. */
function interruptedBy(single: fc.Arbitrary<SingleStep>) {
  /** What comes in between two statements of one operation. */
  const between = fc.array(single, { maxLength: 3 });
  const betweenPatient = fc.array(patient, { maxLength: 3 });
  /** When jobs were put back: often somebody claims them. */
  const betweenClaims = fc.array(
    fc.oneof(
      { weight: 1, arbitrary: single },
      {
        weight: 1,
        arbitrary: claim.map((to): SingleStep => ({ happens: 'claim', to: { ...to, limit: 5 } })),
      },
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

  return {
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
    /** A worker's claim, while others claim as well; its connection may break before it commits. */
    claimWhile: fc.record({ claim, commit: fc.boolean(), claimed: betweenPatient }),
    setLimitWhile: fc.record({ limit, commit: fc.boolean(), set: betweenPatient }),
    runNextWhile: fc.record({
      queue,
      kinds: fc.constantFrom(allKinds, ['kept']),
      ending,
      ran: betweenPatient,
    }),
  };
}

/** What each thing happens to. */
export type Happenings = AtOnce & ValuesOf<ReturnType<typeof interruptedBy>>;

/** How each thing is done, to the database and to the model. */
export type Doings = { readonly [K in keyof Happenings]: (to: Happenings[K]) => Promise<void> };

/** One thing that happens. */
export type Step = StepOf<Happenings>;

/** What walks are made of, where these happen so often. */
function stepsBy(weights: Weights, inGroups: number): fc.Arbitrary<Step> {
  const single = stepsOf(atOnce, weights) as fc.Arbitrary<SingleStep>;
  return stepsOf(
    { ...atOnce, ...interruptedBy(single) },
    {
      ...weights,
      enqueueWhile: 10,
      cancelWhile: 7,
      settleWhile: 10,
      claimLost: 5,
      lockRow: 6,
      comeBack: 7,
      fireWhile: 6,
      completeInTransaction: 7,
      runNextWhile: 7,
      claimWhile: inGroups,
      setLimitWhile: inGroups,
    },
  ) as fc.Arbitrary<Step>;
}

/** In queues without groups. */
export const step = stepsBy(weights, 0);

/** In queues with groups. */
export const groupStep = stepsBy(groupWeights, 8);

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
