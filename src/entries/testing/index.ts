/**
 * The testing kit of drizzle-queue, for any runner: `drizzle-queue/testing`. It runs the library's own code
 * on a real database, and mocks nothing. Importing it changes no state.
 */

export type { RanJob, WorkerEvents } from '../../index.ts';
export {
  createTestDatabase,
  type PgliteDb,
  type TestDatabase,
  type TestDatabaseOptions,
} from './create-test-database.ts';
export { type DrainInOptions, type DrainInResult, drainIn } from './drain-in.ts';
export { enqueuedBy } from './enqueued-by.ts';
export type { ExpectedCompletion, ExpectedDiscard, ExpectedJob } from './expected-job.ts';
export type { ExpectedSteps } from './expected-steps.ts';
export { ended, type GivenParent, type ParentEnd } from './given-parents.ts';
export { type GivenSignal, type RunStep, sent } from './given-steps.ts';
export { type InTransactionOptions, inTransaction } from './in-transaction.ts';
export { type InlineOptions, inline } from './inline.ts';
export {
  type MatcherContext,
  type MatcherResult,
  matchersOf,
  type QueueAssertions,
  type QueueMatchers,
  queueMatchers,
} from './queue-matchers.ts';
export { type HandlerRun, type RunHandlerOptions, runHandler } from './run-handler.ts';
export { spy, type WorkerSpy, waitUntil } from './spy.ts';
export type { TimeSpan } from './time-span.ts';
export { type TravelOptions, travel } from './travel.ts';
export type { Announced, JobEvent, JobSelector, ToldOf } from './worker-record.ts';
