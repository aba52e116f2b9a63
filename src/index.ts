/**
 * drizzle-queue: a job queue that is part of your Drizzle schema. These names are the public API; everything
 * else may change.
 */

// Fail
export {
  BatchError,
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
  type KeepResult,
  type OutputInput,
  type Payload,
  type PayloadInput,
} from './job/definition.ts';
export type {
  Debounce,
  EnqueueOptions,
  LimitedEnqueueOptions,
  PlainEnqueueOptions,
  Replace,
  Throttle,
} from './job/enqueue-options.ts';
// Work
export { type Cancel, cancel, type Fail, fail, type Snooze, snooze } from './job/outcome.ts';
export { type StandardSchema, type Unvalidated, unvalidated } from './job/standard-schema.ts';
export type { LimitName, QueueName } from './limits/limit-name.ts';
export type { LimitOverride, LimitRecord } from './limits/limit-record.ts';
// Limit
export type { GroupSettings, LimitSettings, QueueLimits, Rate } from './limits/limit-settings.ts';
export type { GroupList, LimitFilter, LimitList, Limits } from './limits/limits.ts';
export { limitsIn, type MakeLimits } from './limits/limits-in.ts';
export type { PausedQueue } from './queries/find-pauses.ts';
export type { RedriveResult } from './queries/redrive-jobs.ts';
export type { Around, AttemptContext, BatchAttemptContext, JobToEnqueue } from './queue/around.ts';
export type { CancelOptions, CancelResult } from './queue/cancel.ts';
export type { CancelFilter, CancelManyOptions, CancelManyResult } from './queue/cancel-many.ts';
export type { Finding, FindingCode } from './queue/check/finding.ts';
// Define and enqueue
export { createQueue } from './queue/create-queue.ts';
export type { EnqueueArguments, EnqueueEntry } from './queue/enqueue-arguments.ts';
export type { EnqueueFromArguments, EnqueueFromOptions, PerRow, SelectOf } from './queue/enqueue-from.ts';
export type { EnqueueResult, LimitedEnqueueResult, RefusedEnqueueResult } from './queue/enqueue-jobs.ts';
export type { BatchEnqueueResult, EnqueueQuery } from './queue/enqueue-query.ts';
export type { JobRecordOf } from './queue/job-record-of.ts';
export type { JobList, ListFilter, OwnFilter } from './queue/list.ts';
export type { CreateQueueOptions } from './queue/options.ts';
export type { Queue } from './queue/queue.ts';
export type { RedriveFilter, RedriveOptions } from './queue/redrive.ts';
export type { RunNowManyResult, RunNowResult } from './queue/run-now.ts';
export type {
  KindCounts,
  KindRates,
  LiveCounts,
  OutcomeCounts,
  Percentiles,
  Precision,
  QueueCounts,
  QueueRates,
  QueueStats,
  StatsOptions,
  TimelinePoint,
  TotalPoint,
} from './queue/stats/queue-stats.ts';
export type { QueueVitals, Vital, VitalCode } from './queue/stats/queue-vitals.ts';
// Wait for results
export type { FinalRecord, FinalRecordOf } from './queue/waiting/final-record.ts';
export { JobFailedError, JobGoneError, WaitTimeoutError } from './queue/waiting/wait-errors.ts';
export type { WaitOptions } from './queue/waiting/wait-options.ts';
// Schedule
export {
  defineSchedule,
  type ScheduleDefinition,
  type ScheduleOptions,
  type ScheduleTiming,
  type TickOptions,
} from './schedules/define-schedule.ts';
export type { ScheduleFilter, ScheduleList } from './schedules/schedule-list.ts';
export type { ScheduleRecord } from './schedules/schedule-record.ts';
export type { ScheduleRun, Schedules } from './schedules/schedules.ts';
export { type MakeSchedules, schedulesIn } from './schedules/schedules-in.ts';
export type { Database, Executor, Transaction } from './sql/executor.ts';
export type { LimitTables, Serial } from './sql/grouping.ts';
export type { JobRecord, JobState, LiveState } from './sql/job-record.ts';
export type { WorkerEvents } from './worker/attempt/events.ts';
export {
  type BatchContext,
  type BatchEntry,
  type BatchJob,
  type BatchOptions,
  type BatchResult,
  type CompleteBatchArguments,
  handleBatch,
} from './worker/attempt/handle-batch.ts';
export {
  type BatchHandler,
  type CompleteArguments,
  type ContextDb,
  type DbOrTx,
  type Handler,
  type HandlerContext,
  type HandlerResult,
  handle,
  type JobHandler,
  type JobInfo,
  type RunningJob,
  type TransactionOf,
  type UntypedDatabase,
} from './worker/attempt/handler.ts';
export { type HandlersFor, handlersFor } from './worker/attempt/handlers-for.ts';
export { type DrainOptions, type DrainResult, drain } from './worker/drain.ts';
// Observe
export type { WorkerHealth } from './worker/health/health.ts';
export { healthHandler } from './worker/health/health-handler.ts';
export { type LogWorkerOptions, logWorker } from './worker/log/log-worker.ts';
export type { Logger, LogLevel } from './worker/log/logger.ts';
export type { RunOptions, WorkerOptions } from './worker/options.ts';
export { type RanJob, type RunNextOptions, runNext } from './worker/run-next.ts';
export type { Aging, QueueSettings } from './worker/served-queues.ts';
export { NoAnswerError } from './worker/statements/no-answer-error.ts';
export type { WorkerPart } from './worker/statements/statements.ts';
export { createWorker, type Worker } from './worker/worker.ts';
