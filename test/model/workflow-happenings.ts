import fc from 'fast-check';
import { ending, which } from './choices.ts';

export const WORKFLOW_QUEUES = ['mail', 'slow'] as const;
export const SIGNALS = ['approval', 'payment'] as const;

const queue = fc.constantFrom(...WORKFLOW_QUEUES);
const signal = fc.constantFrom(...SIGNALS);
/** Of the steps of one kind. */
const place = fc.nat(2);

/** Those that wait for no lock of an open transaction that they could meet, or are left out where they would. */
const atOnce = {
  enqueue: fc.record({ queue }),
  /** Each job waits for some of those before it. */
  enqueueFlow: fc.record({
    jobs: fc.array(
      fc.record({
        queue,
        after: fc.array(which, { maxLength: 2 }),
        onFailure: fc.constantFrom('cancel', 'cancel', 'run'),
        /** Whether it waits until its deadline at most. */
        timed: fc.boolean(),
      }),
      { minLength: 2, maxLength: 6 },
    ),
  }),
  enqueueBatch: fc.record({ queue, members: fc.nat(3) }),
  claim: fc.record({ worker: which, queue, sweep: fc.boolean(), limit: fc.integer({ min: 1, max: 4 }) }),
  record: fc.record({
    attempt: which,
    stale: fc.boolean(),
    place,
    ended: fc.boolean(),
    others: fc.boolean(),
  }),
  sleep: fc.record({ attempt: which, place, hours: fc.boolean() }),
  receive: fc.record({
    attempt: which,
    signal,
    place,
    timeout: fc.constantFrom('none', 'none', 'over', 'hours'),
  }),
  children: fc.record({
    attempt: which,
    stale: fc.boolean(),
    queue,
    place,
    members: fc.constantFrom(0, 1, 2, 2, 3),
    detached: fc.constantFrom(false, false, true),
  }),
  grow: fc.record({ attempt: which, place, members: fc.integer({ min: 1, max: 2 }) }),
  waitFor: fc.record({
    attempt: which,
    stale: fc.boolean(),
    which: fc.array(which, { minLength: 1, maxLength: 2 }),
    failFast: fc.boolean(),
  }),
  park: fc.record({ attempt: which, stale: fc.boolean() }),
  settle: fc.record({
    attempt: which,
    stale: fc.boolean(),
    ending: ending.filter((one) => !one.startsWith('wait')),
  }),
  die: fc.record({ worker: which }),
  signal: fc.record({
    job: which,
    waiting: fc.boolean(),
    signal,
    key: fc.constantFrom(undefined, undefined, 'k'),
  }),
  cancel: fc.record({ job: which, force: fc.boolean() }),
  cancelFlow: fc.record({ flow: which }),
  endMembers: fc.record({}),
  /** Some batches, or any. */
  fold: fc.record({ ids: fc.option(fc.array(which, { minLength: 1, maxLength: 2 }), { nil: undefined }) }),
  redrive: fc.record({ job: which }),
  redriveFlow: fc.record({ flow: which }),
  redriveFrom: fc.record({ job: which, step: which }),
  fork: fc.record({ job: which, step: which }),
  finish: fc.record({ job: which, waiting: fc.boolean() }),
  /** The row of a member is deleted by hand. */
  deleteRow: fc.record({ job: which }),
  recount: fc.record({ batch: which, twice: fc.boolean() }),
  timePasses: fc.record({}),
};

type ValuesOf<T> = { [K in keyof T]: T[K] extends fc.Arbitrary<infer TValue> ? TValue : never };
type StepOf<T> = { [K in keyof T]: { readonly happens: K; readonly to: T[K] } }[keyof T];
type AtOnce = ValuesOf<typeof atOnce>;

export type SingleWorkflowStep = StepOf<AtOnce>;

const weights: Readonly<Record<keyof AtOnce, number>> = {
  enqueue: 8,
  enqueueFlow: 5,
  enqueueBatch: 3,
  claim: 26,
  record: 8,
  sleep: 3,
  receive: 12,
  children: 12,
  grow: 4,
  waitFor: 12,
  park: 14,
  settle: 18,
  die: 3,
  signal: 10,
  cancel: 4,
  cancelFlow: 2,
  endMembers: 3,
  fold: 14,
  redrive: 4,
  redriveFlow: 4,
  redriveFrom: 3,
  fork: 5,
  finish: 4,
  deleteRow: 2,
  recount: 3,
  timePasses: 4,
};

/** The key and its value belong together, which the entries of an object do not say. */
const single = fc.oneof(
  ...Object.entries(atOnce).map(([happens, to]) => ({
    weight: weights[happens as keyof AtOnce],
    arbitrary: (to as fc.Arbitrary<unknown>).map((to) => ({ happens, to })),
  })),
) as fc.Arbitrary<SingleWorkflowStep>;

const between = fc.array(single, { minLength: 1, maxLength: 4 });

/** What happens while a transaction is open that has sent one statement, and then commits or not. */
const whileOpen = {
  signalWhile: fc.record({ signal: atOnce.signal, commit: fc.boolean(), between }),
  endWhile: fc.record({ attempt: which, commit: fc.boolean(), between }),
  foldWhile: fc.record({ commit: fc.boolean(), between }),
  redriveFlowWhile: fc.record({ flow: which, commit: fc.boolean(), between }),
  growWhile: fc.record({ grow: atOnce.grow, commit: fc.boolean(), between }),
};

export type WorkflowHappenings = AtOnce & ValuesOf<typeof whileOpen>;
export type WorkflowDoings = {
  readonly [K in keyof WorkflowHappenings]: (to: WorkflowHappenings[K]) => Promise<void>;
};
export type WorkflowStep = StepOf<WorkflowHappenings>;

export const workflowStep = fc.oneof(
  { weight: 22, arbitrary: single },
  ...Object.entries(whileOpen).map(([happens, to]) => ({
    weight: 1,
    arbitrary: (to as fc.Arbitrary<unknown>).map((to) => ({ happens, to })),
  })),
) as fc.Arbitrary<WorkflowStep>;
