/**
 * What the testing kit takes from inside the package, beside the public names and internal.ts. In the
 * transaction of a test it does what a worker would do. The package does not export this file.
 */

export { checkDate, checkDurationMs, checkId, MAX_DELAY_MS, MAX_TIMER_MS } from './core/job/limits.ts';
export type { StoredValue } from './core/job/stored.ts';
export { toStoredJson, UnstorableValueError } from './core/job/stored-json.ts';
export { type Transition, transitionFor, verdictOn } from './core/job/transition.ts';
export { outputToStore, payloadToStore } from './core/job/validate.ts';
export { claimJobs } from './core/queries/claim/claim-jobs.ts';
export { asyncContext } from './core/runtime.ts';
export type { ClaimedJob } from './core/sql/claimed-job.ts';
export { epochMs } from './core/sql/epoch-ms.ts';
export { NO_DATABASE, type Runner } from './core/sql/executor.ts';
export { type HeldJob, idsAndFences } from './core/sql/fence.ts';
export { isFree } from './core/sql/is-free.ts';
export { liveRecords, resultRecords, toJobRecord } from './core/sql/job-record.ts';
export { servedKind } from './core/sql/served-kind.ts';
export { groupsInAny } from './core/sql/statement-context.ts';
export type { ContextFeature } from './core/worker/context-feature.ts';
export { checkRunOptions } from './core/worker/options.ts';
export { Attempt } from './core/worker/run/attempt.ts';
export { HAS_COMMITTED } from './core/worker/run/completion.ts';
export { executeJob } from './core/worker/run/execute-job.ts';
export { handlersByKind, type OwnValuesOf } from './core/worker/run/handler.ts';
export { progressToStore } from './core/worker/run/progress.ts';
export { runInTransaction } from './core/worker/run-in-transaction.ts';
export type { MemberEnd } from './features/batches/queries/find-ends.ts';
export type { Waited } from './features/batches/queries/find-waited.ts';
export { type DueSchedule, findDueSchedules } from './features/schedules/queries/find-due-schedules.ts';
export { fireSchedules } from './features/schedules/queries/fire-schedules.ts';
export { queryScheduleRows } from './features/schedules/sql/schedule-tables.ts';
export { toFiring } from './features/schedules/to-firing.ts';
export { signalToStore } from './features/workflows/job/signal-value.ts';
export { type FoundStep, findStepsOfOne } from './features/workflows/queries/find-steps.ts';
export type { Received, SignalToReceive } from './features/workflows/queries/receive-signal.ts';
export type { RecordedStep, StepToRecord } from './features/workflows/queries/record-steps.ts';
export type { TablesOfWorkflows } from './features/workflows/sql/workflow-tables.ts';
export { type TokenClaims, Tokens, tokensFor } from './features/workflows/tokens/tokens.ts';
export type {
  ChildrenToEnqueue,
  EnqueuedChildren,
  KnownStep,
  StepStore,
} from './features/workflows/worker/attempt-steps.ts';
export { StepRun } from './features/workflows/worker/step-run.ts';
