/**
 * drizzle-queue: a job queue that is part of your Drizzle schema. This list of names is the public API; everything else is
 * free to change.
 */

export type { CancelOptions, CancelResult } from './cancel.ts';
export type { Finding, FindingCode } from './check/finding.ts';
// Define and enqueue
export { createQueue } from './create-queue.ts';
export type { CreateQueueOptions } from './create-queue-options.ts';
export type { EnqueueArguments, EnqueueEntry } from './enqueue-arguments.ts';
export type { EnqueueFromArguments, EnqueueFromOptions, PerRow, SelectOf } from './enqueue-from.ts';
export type { Enqueued } from './enqueue-jobs.ts';
export type { BatchEnqueued, EnqueueQuery } from './enqueue-query.ts';
// Fail
export {
  InvalidOutputError,
  InvalidPayloadError,
  JobCancelledError,
  JobTimeoutError,
  LeaseLostError,
  MissingMigrationError,
  NonRetryableError,
  QueueError,
  UnknownKindError,
  UnsupportedPostgresError,
  type ValidationIssue,
  WorkerLostError,
} from './errors.ts';
export {
  type Backoff,
  type ExponentialBackoffOptions,
  exponentialBackoff,
  fixedBackoff,
} from './job/backoff.ts';
export {
  defineJob,
  type JobDefinition,
  type JobOptions,
  type OutputInput,
  type Payload,
  type PayloadInput,
} from './job/definition.ts';
export type { EnqueueOptions } from './job/new-job.ts';
// Work
export { type Cancel, cancel, type Snooze, snooze } from './job/outcome.ts';
export { type StandardSchema, unvalidated } from './job/standard-schema.ts';
export type { JobRecordOf } from './job-record-of.ts';
export type { JobList, ListFilter, OwnFilter } from './list.ts';
export type { Database, Executor, Transaction } from './queries/executor.ts';
export type { PausedQueue } from './queries/find-pauses.ts';
export type { JobRecord, JobState, LiveState } from './queries/job-record.ts';
export type { Redriven } from './queries/redrive-jobs.ts';
export type { Queue } from './queue.ts';
export type { RedriveFilter } from './redrive.ts';
export { type Drained, type DrainOptions, drain } from './worker/drain.ts';
export {
  type CompleteArguments,
  type DbOrTx,
  type Handler,
  type HandlerContext,
  type HandlerResult,
  handle,
  type JobInfo,
  type RunningJob,
  type TransactionOf,
} from './worker/handler.ts';
export { type RanJob, type RunNextOptions, runNext } from './worker/run-next.ts';
export { createWorker, type Worker } from './worker/worker.ts';
export type { WorkerEvents } from './worker/worker-events.ts';
export type { QueueSettings, RunOptions, WorkerOptions } from './worker/worker-options.ts';
