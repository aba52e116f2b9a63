/**
 * What the entries of this package take from inside it, beside the public names of index.ts. The package does
 * not export it, and it may change in any version. A name that an app would use belongs in index.ts instead,
 * and one that only the testing kit takes in testing-face.ts.
 */

// How options are checked, values shown and errors described, in every entry with the same words.

export { checkDefinition } from './core/job/definition.ts';
export { describeThrown } from './core/job/describe-error.ts';
export { checkOptions, given, namesOf } from './core/job/known-options.ts';
export {
  checkBoolean,
  checkInteger,
  checkObject,
  checkText,
  MAX_ATTEMPTS,
  MAX_NAME_BYTES,
  MAX_PRIORITY,
  MAX_UNIQUE_KEY_BYTES,
} from './core/job/limits.ts';
export { shown } from './core/job/shown.ts';
export { unstorableIn } from './core/job/stored-json.ts';
export { processName } from './core/runtime.ts';
export { resultWithin } from './core/time/resolves-within.ts';
export { sleep } from './core/time/sleep.ts';

// How any statement is sent, and what an entry knows of the tables.

export { withinTime } from './core/drivers/within-time.ts';
export type { GivenOptions } from './core/job/enqueue-options.ts';
export { type NewJob, newJob } from './core/job/new-job.ts';
export { KEPT_ERRORS } from './core/schema/attempt-error.ts';
export { type OwnColumn, ownColumnsOf } from './core/schema/own-columns.ts';
export { strangersAmong } from './core/schema/same-set.ts';
export { causesOf } from './core/sql/causes-of.ts';
export { checkExecutor, queryRows, type RawRow, rowsOf, sqlStateOf } from './core/sql/executor.ts';
export { quotedName } from './core/sql/quoted-name.ts';
export { withTime } from './core/sql/recorded-error.ts';
export { transact } from './core/sql/transact.ts';
export { unlessMissing } from './core/sql/unless-missing.ts';

// What the dashboard and the command read: looks with a scope, a bound of time and excerpts, as pages need.

export { browseByRunAt, findReadEnd } from './core/queries/browse/browse-by-run-at.ts';
export {
  browseJobs,
  isFinalState,
  type JobSearch,
  type LiveSource,
  type ResultSource,
} from './core/queries/browse/browse-jobs.ts';
export { countDiscarded } from './core/queries/browse/count-discarded.ts';
export { countFinished, type Finished, type FinishedMinute } from './core/queries/browse/count-finished.ts';
export { countOfGroup } from './core/queries/browse/count-of-group.ts';
export { type Band, findBands } from './core/queries/browse/find-bands.ts';
export { findCause } from './core/queries/browse/find-cause.ts';
export { type EndPlace, findEndedJobs, findEndOfEnds } from './core/queries/browse/find-ended-jobs.ts';
export {
  countMany,
  findMany,
  type ManyAction,
  type ManyJobs,
  type ManySlice,
} from './core/queries/browse/find-many.ts';
export { type CauseOfErrors, countOfCause, findOfCause } from './core/queries/browse/find-of-cause.ts';
export { findSearchEnd } from './core/queries/browse/find-search-end.ts';
export { type ErrorGroup, groupErrors } from './core/queries/browse/group-errors.ts';
export { groupRetrying, type RetryingGroup } from './core/queries/browse/group-retrying.ts';
export { lookAtWorkers, type WorkerLine } from './core/queries/browse/look-at-workers.ts';
export { samplePayloads } from './core/queries/browse/sample-payloads.ts';
export { type JsonText, type ShownJob, showJob } from './core/queries/browse/show-job.ts';
export { countJobs } from './core/queries/operate/count-jobs.ts';
export {
  COUNTED_RETRYING,
  type CountedRetrying,
  countRetrying,
} from './core/queries/operate/count-retrying.ts';
export { databaseTime } from './core/queries/operate/database-time.ts';
export { findLastId } from './core/queries/operate/find-last-id.ts';
export { findRunnable } from './core/queries/operate/find-runnable.ts';
export { listJobs } from './core/queries/operate/list-jobs.ts';
export { isCitus } from './core/queries/presence/is-citus.ts';
export { notInVitals } from './core/queue/check/not-in-vitals.ts';
export { isLiveState } from './core/queue/operate/filter-values.ts';
export { wasRefused } from './core/queue/operate/run-now.ts';
export { figuresOf } from './core/queue/stats/known-figures.ts';
export { isOldestUnknown } from './core/queue/stats/queue-stats.ts';
export { Rest } from './core/queue/stats/rest.ts';
export { SharedAnswer } from './core/queue/stats/shared-answer.ts';
export { ERROR_EXCERPT, type JobLine } from './core/sql/job-line.ts';
export { FIRST_PLACE, isBefore, type JobPlace } from './core/sql/job-place.ts';
export type { JobScope } from './core/sql/job-scope.ts';
export { type OwnWanted, ownWanted } from './core/sql/own-values.ts';
export { CLAIM_REFUSED } from './core/sql/refused-claim.ts';
export { halves } from './core/worker/base/in-halves.ts';
export { isAboutAccess, isAboutLocks, isAboutTheServer, isCancelled } from './core/worker/base/refusal.ts';
export { notDeclared } from './features/limits/not-declared.ts';
export { sumMetrics } from './features/metrics/queries/sum-metrics.ts';
export { ratesIn } from './features/metrics/rates.ts';
export { isUndo, MAX_MADE_NAME_BYTES } from './features/workflows/job/step-names.ts';
export type { ShownStep, ShownSteps } from './features/workflows/queries/show-steps.ts';

// How imported jobs get into the tables, and what the workers of several databases do like one.

export type { JobSettings } from './core/job/enqueue-options.ts';
export { findStandingJobs } from './core/queries/enqueue/find-standing-jobs.ts';
export { notifyWorkers } from './core/queries/presence/notify-workers.ts';
export { type Batching, checkBatching, DEFAULT_BATCH_SIZE } from './core/queue/enqueue/batching.ts';
export { type EnqueueSettings, insertAround } from './core/queue/enqueue/enqueue-around.ts';
export { settingsOf } from './core/queue/enqueue/settings-of.ts';
export { faultPoint } from './core/sql/fault-point.ts';
export { arrayText } from './core/sql/fence.ts';
export { inGroup, notedGroups } from './core/sql/grouped-jobs.ts';
export { withOwn } from './core/sql/own-values.ts';
export { planAnew } from './core/sql/plan-anew.ts';
export { groupsIn } from './core/sql/statement-context.ts';
export type { EveryKind } from './core/worker/every-kind.ts';
export { LINES } from './core/worker/log/log-lines.ts';
export { printWorker } from './core/worker/log/log-worker.ts';
export { printed } from './core/worker/log/logger.ts';
export { onFirstSignal } from './core/worker/on-first-signal.ts';
