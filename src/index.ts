/**
 * drizzle-queue: a job queue that is part of your Drizzle schema. These names are the public API; everything
 * else may change.
 */

export {
  type Backoff,
  type ExponentialBackoffOptions,
  exponentialBackoff,
  fixedBackoff,
} from './core/job/backoff.ts';
export {
  defineJob,
  type JobDefinition,
  type JobOptions,
  type KeepResult,
  type OutputInput,
  type Payload,
  type PayloadInput,
} from './core/job/definition.ts';
export type {
  Debounce,
  EnqueueOptions,
  LimitedEnqueueOptions,
  PlainEnqueueOptions,
  Replace,
  Throttle,
} from './core/job/enqueue-options.ts';
// Work
export {
  type Cancel,
  cancel,
  type Fail,
  fail,
  isCancel,
  isFail,
  isSnooze,
  isWait,
  type Snooze,
  snooze,
  type Wait,
} from './core/job/outcome.ts';
export { type StandardSchema, type Unvalidated, unvalidated } from './core/job/standard-schema.ts';
export type { PausedQueue } from './core/queries/operate/find-pauses.ts';
export type { RedriveResult } from './core/queries/operate/redrive-jobs.ts';
export type { Finding, FindingCode } from './core/queue/check/finding.ts';
export type {
  Around,
  AttemptContext,
  BatchAttemptContext,
  JobToEnqueue,
} from './core/queue/enqueue/around.ts';
export type { EnqueueArguments, EnqueueEntry } from './core/queue/enqueue/enqueue-arguments.ts';
export type {
  EnqueueFromArguments,
  EnqueueFromOptions,
  PerRow,
  SelectOf,
} from './core/queue/enqueue/enqueue-from.ts';
export type {
  EnqueueResult,
  LimitedEnqueueResult,
  RefusedEnqueueResult,
} from './core/queue/enqueue/enqueue-jobs.ts';
export type { BatchEnqueueResult, EnqueueQuery } from './core/queue/enqueue/enqueue-query.ts';
export type { CancelOptions, CancelResult } from './core/queue/operate/cancel.ts';
export type { CancelFilter, CancelManyOptions, CancelManyResult } from './core/queue/operate/cancel-many.ts';
export type { JobRecordOf } from './core/queue/operate/job-record-of.ts';
export type { JobList, ListFilter, OwnFilter } from './core/queue/operate/list.ts';
export type { RedriveFilter, RedriveOptions } from './core/queue/operate/redrive.ts';
export type { RunNowManyResult, RunNowResult } from './core/queue/operate/run-now.ts';
export type { Queue } from './core/queue/queue.ts';
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
} from './core/queue/stats/queue-stats.ts';
export type { QueueVitals, Vital, VitalCode } from './core/queue/stats/queue-vitals.ts';
// Wait for results
export type { FinalRecord, FinalRecordOf } from './core/queue/wait/final-record.ts';
export { JobFailedError, JobGoneError, WaitTimeoutError } from './core/queue/wait/wait-errors.ts';
export type { WaitOptions } from './core/queue/wait/wait-options.ts';
export type { Database, Executor, Transaction } from './core/sql/executor.ts';
export type { JobRecord, JobState, LiveState } from './core/sql/job-record.ts';
export type { WorkerEvents } from './core/worker/base/events.ts';
// Observe
export type { WorkerHealth } from './core/worker/health.ts';
export { healthHandler } from './core/worker/health-handler.ts';
export { type LogWorkerOptions, logWorker } from './core/worker/log/log-worker.ts';
export type { Logger, LogLevel } from './core/worker/log/logger.ts';
export type { RunOptions } from './core/worker/options.ts';
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
  type PlainContext,
  type RunningJob,
  type TransactionOf,
  type UntypedDatabase,
} from './core/worker/run/handler.ts';
export { type RanJob, type RunNextOptions, runNext } from './core/worker/run-next.ts';
export type { Aging, QueueSettings } from './core/worker/served-queues.ts';
export { NoAnswerError } from './core/worker/statements/no-answer-error.ts';
export type { WorkerPart } from './core/worker/statements/statements.ts';
export type { Worker } from './core/worker/worker.ts';
// Define and enqueue
export type { Absent, NoLimits, NoSchedules, NoWorkflows } from './entries/main/absent-features.ts';
export { createQueue } from './entries/main/create-queue.ts';
export { createWorker } from './entries/main/create-worker.ts';
export { type DrainOptions, type DrainResult, drain } from './entries/main/drain.ts';
export type { CreateQueueOptions } from './entries/main/queue-options.ts';
export type { WorkerOptions } from './entries/main/worker-options.ts';
// Fail
export {
  BatchError,
  InvalidOutputError,
  InvalidPayloadError,
  JobCancelledError,
  JobDeadlineError,
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
  type BatchContext,
  type BatchEntry,
  type BatchJob,
  type BatchOptions,
  type BatchResult,
  type CompleteBatchArguments,
  handleBatch,
} from './features/batch-handlers/handle-batch.ts';
export { type HandlersFor, handlersFor } from './features/batch-handlers/handlers-for.ts';
// Wait for other jobs
export type { BatchEntries, EnqueuedBatch, LastJob } from './features/batches/enqueue-batch.ts';
export type { EnqueuedFlow, FlowBuilder, FlowJob, FlowJobOptions } from './features/batches/enqueue-flow.ts';
export type { FlowGraph, FlowGroup } from './features/batches/flow-graph.ts';
export type { FlowFilter, FlowList, FlowState, ListedFlow } from './features/batches/list-flows.ts';
export type { FlowStats } from './features/batches/queries/count-open-flows.ts';
export type { FlowRecord } from './features/batches/queries/find-flow.ts';
export type { GroupList, LimitFilter, LimitList, Limits } from './features/limits/limits.ts';
export { limitsIn, type MakeLimits } from './features/limits/limits-in.ts';
export type { GroupRecord } from './features/limits/queries/find-groups.ts';
export type { LimitName, QueueName } from './features/limits/settings/limit-name.ts';
export type { LimitOverride, LimitRecord } from './features/limits/settings/limit-record.ts';
// Limit
export type {
  GroupSettings,
  LimitSettings,
  QueueLimits,
  Rate,
  Serial,
} from './features/limits/settings/limit-settings.ts';
export type { LimitTables } from './features/limits/sql/limit-tables.ts';
// Schedule
export {
  defineSchedule,
  type ScheduleDefinition,
  type ScheduleOptions,
  type ScheduleTiming,
  type TickOptions,
} from './features/schedules/define-schedule.ts';
export type { ScheduleFilter, ScheduleList } from './features/schedules/schedule-list.ts';
export type { ScheduleRecord } from './features/schedules/schedule-record.ts';
export type { ScheduleRun, Schedules } from './features/schedules/schedules.ts';
export { type MakeSchedules, schedulesIn } from './features/schedules/schedules-in.ts';
export type { FinishResult, JobToFinish } from './features/workflows/finish.ts';
export type { ForkedJob, ForkOptions } from './features/workflows/fork.ts';
// Survive the middle of a job
export type {
  Child,
  ChildArguments,
  ChildEnd,
  ChildEntry,
  ChildOptions,
  Children,
  ChildSettings,
  ParentCounts,
} from './features/workflows/job/child.ts';
export {
  defineSignal,
  type SignalDefinition,
  type SignalInput,
  type SignalValue,
} from './features/workflows/job/define-signal.ts';
export type {
  FirstOf,
  FirstOptions,
  FirstSource,
  FirstSources,
  FirstValue,
} from './features/workflows/job/first.ts';
export { InvalidTokenError } from './features/workflows/job/invalid-token-error.ts';
export { isFinal } from './features/workflows/job/is-final.ts';
export type {
  OpenStep,
  Step,
  StepInfo,
  StepOptions,
  StepOutput,
  StepTransaction,
  StepTransactionOptions,
  TokenOptions,
  WaitForSignalOptions,
} from './features/workflows/job/step.ts';
export {
  ChildFailedError,
  DuplicateStepError,
  InvalidSignalError,
  MailboxFullError,
  NestedStepError,
  StepFailedError,
  StepLimitError,
  StepMismatchError,
} from './features/workflows/job/step-errors.ts';
export type {
  ObservedStep,
  StepEnd,
  StepObservation,
  StepObserver,
} from './features/workflows/job/step-observer.ts';
export type { MailboxRecord } from './features/workflows/queries/find-mailboxes.ts';
export type { StepRecord } from './features/workflows/queries/find-steps.ts';
export type { RedriveFromResult } from './features/workflows/redrive.ts';
export type { SignalTo } from './features/workflows/target-of.ts';
export type { TokenSecret } from './features/workflows/tokens/tokens.ts';
export type {
  RedeemArguments,
  RedeemResult,
  SignalArguments,
  SignalOptions,
  SignalResult,
  WaitForFlowOptions,
  Workflows,
} from './features/workflows/workflows.ts';
export { type MakeWorkflows, type WorkflowOptions, workflowsIn } from './features/workflows/workflows-in.ts';
