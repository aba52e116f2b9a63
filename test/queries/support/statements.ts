import type { SQL } from 'drizzle-orm';
import { sql } from 'drizzle-orm';
import { drizzle } from 'drizzle-orm/postgres-js';
import { MAX_PRIORITY } from '../../../src/core/job/limits.ts';
import type { NewJob } from '../../../src/core/job/new-job.ts';
import type { Finish, Reschedule } from '../../../src/core/job/transition.ts';
import { beginJobsQuery } from '../../../src/core/queries/begin/begin-jobs.ts';
import { browseByRunAtQuery, findReadEndQuery } from '../../../src/core/queries/browse/browse-by-run-at.ts';
import { browseJobsQuery } from '../../../src/core/queries/browse/browse-jobs.ts';
import { countDiscardedQuery } from '../../../src/core/queries/browse/count-discarded.ts';
import { countFinishedQuery } from '../../../src/core/queries/browse/count-finished.ts';
import { countOfGroupQuery } from '../../../src/core/queries/browse/count-of-group.ts';
import { findBandsQuery } from '../../../src/core/queries/browse/find-bands.ts';
import { findCauseQuery } from '../../../src/core/queries/browse/find-cause.ts';
import { findEndedJobsQuery } from '../../../src/core/queries/browse/find-ended-jobs.ts';
import { countManyQuery, findManyQuery } from '../../../src/core/queries/browse/find-many.ts';
import { countOfCauseQuery, findOfCauseQuery } from '../../../src/core/queries/browse/find-of-cause.ts';
import { findSearchEndQuery } from '../../../src/core/queries/browse/find-search-end.ts';
import { groupErrorsQuery } from '../../../src/core/queries/browse/group-errors.ts';
import { groupRetryingQuery } from '../../../src/core/queries/browse/group-retrying.ts';
import { lookAtWorkersQuery } from '../../../src/core/queries/browse/look-at-workers.ts';
import { samplePayloadsQuery } from '../../../src/core/queries/browse/sample-payloads.ts';
import { showJobQuery } from '../../../src/core/queries/browse/show-job.ts';
import { claimJobsQuery } from '../../../src/core/queries/claim/claim-jobs.ts';
import { findDueQuery } from '../../../src/core/queries/claim/find-due.ts';
import { findDueIdsQuery } from '../../../src/core/queries/claim/find-due-ids.ts';
import { findOverlookedQuery } from '../../../src/core/queries/claim/find-overlooked.ts';
import { findRefusedJobsQuery } from '../../../src/core/queries/claim/find-refused-jobs.ts';
import { setAsideJobQuery } from '../../../src/core/queries/claim/set-aside-job.ts';
import { tryClaimQuery } from '../../../src/core/queries/claim/try-claim.ts';
import { findStandingJobsQuery } from '../../../src/core/queries/enqueue/find-standing-jobs.ts';
import { insertJobsQuery, insertKeyedJobsQuery } from '../../../src/core/queries/enqueue/insert-jobs.ts';
import { insertOneJobQuery } from '../../../src/core/queries/enqueue/insert-one-job.ts';
import { insertSelectedJobsQuery } from '../../../src/core/queries/enqueue/insert-selected-jobs.ts';
import { findHeldJobsQuery } from '../../../src/core/queries/hold/find-held-jobs.ts';
import { findPageEndQuery } from '../../../src/core/queries/hold/find-page-end.ts';
import { findUnknownJobsQuery } from '../../../src/core/queries/hold/find-unknown-jobs.ts';
import { lockHeldJobsQuery } from '../../../src/core/queries/hold/lock-held-jobs.ts';
import { reclaimJobQuery } from '../../../src/core/queries/hold/reclaim-job.ts';
import { releaseJobsQuery } from '../../../src/core/queries/hold/release-jobs.ts';
import { cancelJobsQuery } from '../../../src/core/queries/operate/cancel-jobs.ts';
import { countJobsQuery } from '../../../src/core/queries/operate/count-jobs.ts';
import { countResultsQuery } from '../../../src/core/queries/operate/count-results.ts';
import { countRetryingQuery } from '../../../src/core/queries/operate/count-retrying.ts';
import { countSomeJobsQuery } from '../../../src/core/queries/operate/count-some-jobs.ts';
import { databaseTimeQuery } from '../../../src/core/queries/operate/database-time.ts';
import { estimatedJobsQuery } from '../../../src/core/queries/operate/estimate-jobs.ts';
import { findCancellableQuery } from '../../../src/core/queries/operate/find-cancellable.ts';
import { findCrewsQuery } from '../../../src/core/queries/operate/find-crews.ts';
import { findFirstDueQuery } from '../../../src/core/queries/operate/find-first-due.ts';
import { findHeadsQuery } from '../../../src/core/queries/operate/find-heads.ts';
import { findJobQuery } from '../../../src/core/queries/operate/find-job.ts';
import { findJobsQuery } from '../../../src/core/queries/operate/find-jobs.ts';
import { findLastIdQuery } from '../../../src/core/queries/operate/find-last-id.ts';
import { findLiveIdsQuery } from '../../../src/core/queries/operate/find-live-ids.ts';
import { findPassedOverQuery } from '../../../src/core/queries/operate/find-passed-over.ts';
import { findPassedOverInShardsQuery } from '../../../src/core/queries/operate/find-passed-over-in-shards.ts';
import { findPausesQuery } from '../../../src/core/queries/operate/find-pauses.ts';
import { findRunnableQuery } from '../../../src/core/queries/operate/find-runnable.ts';
import { findServedQueuesQuery } from '../../../src/core/queries/operate/find-served-queues.ts';
import { findSilentWorkersQuery } from '../../../src/core/queries/operate/find-silent-workers.ts';
import { hasGroupsQuery } from '../../../src/core/queries/operate/has-groups.ts';
import { inspectServerQuery } from '../../../src/core/queries/operate/inspect-server.ts';
import { inspectTableQuery } from '../../../src/core/queries/operate/inspect-table.ts';
import { inspectVitalsQuery } from '../../../src/core/queries/operate/inspect-vitals.ts';
import { listJobsQuery } from '../../../src/core/queries/operate/list-jobs.ts';
import { pauseQueueQuery } from '../../../src/core/queries/operate/pause-queue.ts';
import {
  countWorkersQuery,
  findExpiredQuery,
  pruneQueueQuery,
} from '../../../src/core/queries/operate/prune-queue.ts';
import { pruneResultsQuery } from '../../../src/core/queries/operate/prune-results.ts';
import { findDiscardedQuery } from '../../../src/core/queries/operate/redrive-by-queue.ts';
import { redriveJobsQuery } from '../../../src/core/queries/operate/redrive-jobs.ts';
import { requestCancelQuery } from '../../../src/core/queries/operate/request-cancel.ts';
import { requestCancelsQuery } from '../../../src/core/queries/operate/request-cancels.ts';
import { resumeQueueQuery } from '../../../src/core/queries/operate/resume-queue.ts';
import { runJobNowQuery } from '../../../src/core/queries/operate/run-job-now.ts';
import { sizeOfTablesQuery } from '../../../src/core/queries/operate/size-of-tables.ts';
import { backendPidQuery } from '../../../src/core/queries/presence/backend-pid.ts';
import { beatWorkerQuery } from '../../../src/core/queries/presence/beat-worker.ts';
import { databaseStateQuery } from '../../../src/core/queries/presence/check-database.ts';
import { missingGrantsQuery } from '../../../src/core/queries/presence/check-grants.ts';
import { checkWorkersQuery } from '../../../src/core/queries/presence/check-workers.ts';
import { findRequestsQuery, jobRequestsQuery } from '../../../src/core/queries/presence/find-requests.ts';
import { findWorkersQuery, knownWorkers } from '../../../src/core/queries/presence/find-workers.ts';
import { hasLargeIdsQuery } from '../../../src/core/queries/presence/has-large-ids.ts';
import { isCitusQuery } from '../../../src/core/queries/presence/is-citus.ts';
import { lockSessionQuery } from '../../../src/core/queries/presence/lock-session.ts';
import { notifyWorkersQuery } from '../../../src/core/queries/presence/notify-workers.ts';
import { registerWorkerQuery } from '../../../src/core/queries/presence/register-worker.ts';
import {
  removeGoneWorkersQuery,
  removeUnseenWorkerQuery,
  testWorkersQuery,
} from '../../../src/core/queries/presence/remove-gone-workers.ts';
import { removeWorkerQuery } from '../../../src/core/queries/presence/remove-worker.ts';
import { unlockSessionQuery } from '../../../src/core/queries/presence/unlock-session.ts';
import { cancelJobQuery } from '../../../src/core/queries/settle/cancel-job.ts';
import { completeOneJobQuery } from '../../../src/core/queries/settle/complete-one-job.ts';
import { findFatesQuery } from '../../../src/core/queries/settle/find-fates.ts';
import { finishJobsQuery } from '../../../src/core/queries/settle/finish-jobs.ts';
import { hasCancelledQuery } from '../../../src/core/queries/settle/has-cancelled.ts';
import { parkJobsQuery } from '../../../src/core/queries/settle/park-jobs.ts';
import { rescheduleJobsQuery } from '../../../src/core/queries/settle/reschedule-jobs.ts';
import { transactionIdQuery } from '../../../src/core/queries/settle/transaction-id.ts';
import { writeProgressQuery } from '../../../src/core/queries/settle/write-progress.ts';
import type { QueueTables } from '../../../src/core/schema/index.ts';
import { contextOf, inContext } from '../../../src/core/sql/statement-context.ts';
import { carryOverJobsQuery } from '../../../src/entries/import/queries/carry-over-jobs.ts';
import { findImportedJobsQuery } from '../../../src/entries/import/queries/find-imported-jobs.ts';
import { releaseImportedJobsQuery } from '../../../src/entries/import/queries/release-imported-jobs.ts';
import { addWaitsQuery } from '../../../src/features/batches/queries/add-waits.ts';
import { cancelBatchesQuery } from '../../../src/features/batches/queries/cancel-batches.ts';
import { cancelFlowQuery } from '../../../src/features/batches/queries/cancel-flow.ts';
import { countBatchQuery } from '../../../src/features/batches/queries/count-batch.ts';
import { countOpenFlowsQuery } from '../../../src/features/batches/queries/count-open-flows.ts';
import { deleteLeftBatchesQuery } from '../../../src/features/batches/queries/delete-left-batches.ts';
import { endMembersQuery } from '../../../src/features/batches/queries/end-members.ts';
import { endUnclaimedQuery } from '../../../src/features/batches/queries/end-unclaimed.ts';
import { findAnyPlaceQuery } from '../../../src/features/batches/queries/find-any-place.ts';
import { findEndsQuery } from '../../../src/features/batches/queries/find-ends.ts';
import { findFlowQuery } from '../../../src/features/batches/queries/find-flow.ts';
import { findFlowBatchesQuery } from '../../../src/features/batches/queries/find-flow-batches.ts';
import { findFlowGroupsQuery } from '../../../src/features/batches/queries/find-flow-groups.ts';
import { findFlowOfJobQuery } from '../../../src/features/batches/queries/find-flow-of-job.ts';
import { findFlowsQuery } from '../../../src/features/batches/queries/find-flows.ts';
import { findGroupJobsQuery } from '../../../src/features/batches/queries/find-group-jobs.ts';
import { findLeftBatchesQuery } from '../../../src/features/batches/queries/find-left-batches.ts';
import { findLiveMembersQuery } from '../../../src/features/batches/queries/find-live-members.ts';
import { findMembersQuery } from '../../../src/features/batches/queries/find-members.ts';
import { findOpenBatchesQuery } from '../../../src/features/batches/queries/find-open-batches.ts';
import { findTalliedQuery } from '../../../src/features/batches/queries/find-tallied.ts';
import { findToldMembersQuery } from '../../../src/features/batches/queries/find-told-members.ts';
import { findUnclaimedQuery } from '../../../src/features/batches/queries/find-unclaimed.ts';
import { findUnwokenQuery } from '../../../src/features/batches/queries/find-unwoken.ts';
import { findWaitedQuery } from '../../../src/features/batches/queries/find-waited.ts';
import { foldTalliesQuery } from '../../../src/features/batches/queries/fold-tallies.ts';
import { growBatchQuery } from '../../../src/features/batches/queries/grow-batch.ts';
import { isBlockedQuery } from '../../../src/features/batches/queries/is-blocked.ts';
import { lockBatchesQuery } from '../../../src/features/batches/queries/lock-batches.ts';
import { lockFlowQuery } from '../../../src/features/batches/queries/lock-flow.ts';
import { openBatchesQuery } from '../../../src/features/batches/queries/open-batches.ts';
import { parkWaitersQuery } from '../../../src/features/batches/queries/park-waiters.ts';
import { reopenBatchesQuery } from '../../../src/features/batches/queries/reopen-batches.ts';
import { reopenReturnedQuery } from '../../../src/features/batches/queries/reopen-returned.ts';
import { sealBatchQuery } from '../../../src/features/batches/queries/seal-batch.ts';
import { setLockTimeoutQuery } from '../../../src/features/batches/queries/set-lock-timeout.ts';
import { spareMembersQuery } from '../../../src/features/batches/queries/spare-members.ts';
import { tallyMissingQuery } from '../../../src/features/batches/queries/tally-missing.ts';
import { waitForBatchesQuery } from '../../../src/features/batches/queries/wait-for-batches.ts';
import { wakeWaitersQuery } from '../../../src/features/batches/queries/wake-waiters.ts';
import { TalliedEnds } from '../../../src/features/batches/sql/tallied-ends.ts';
import * as controlTables from '../../../src/features/control/index.ts';
import { insertLimitedJobsQuery } from '../../../src/features/keys/queries/insert-limited-jobs.ts';
import { insertTrailingJobsQuery } from '../../../src/features/keys/queries/insert-trailing-jobs.ts';
import { insertWaitingJobsQuery } from '../../../src/features/keys/queries/insert-waiting-jobs.ts';
import {
  findOverKeysQuery,
  pruneKeysOfQuery,
  pruneKeysQuery,
} from '../../../src/features/keys/queries/prune-keys.ts';
import { addUsageQuery } from '../../../src/features/limits/queries/add-usage.ts';
import { admitGroupsQuery } from '../../../src/features/limits/queries/admit-groups.ts';
import { adoptJobsQuery } from '../../../src/features/limits/queries/adopt-jobs.ts';
import { claimGroupedJobsQuery } from '../../../src/features/limits/queries/claim-grouped-jobs.ts';
import { endHandlerHoldsQuery } from '../../../src/features/limits/queries/end-handler-holds.ts';
import { findDueGroupsQuery } from '../../../src/features/limits/queries/find-due-groups.ts';
import { findGroupedDueIdsQuery } from '../../../src/features/limits/queries/find-grouped-due-ids.ts';
import { findGroupsQuery } from '../../../src/features/limits/queries/find-groups.ts';
import { findLeasesQuery } from '../../../src/features/limits/queries/find-leases.ts';
import { findGroupLimitsQuery, findLimitsQuery } from '../../../src/features/limits/queries/find-limits.ts';
import { findPlainJobsQuery } from '../../../src/features/limits/queries/find-plain-jobs.ts';
import { findStoppedGroupsQuery } from '../../../src/features/limits/queries/find-stopped-groups.ts';
import {
  noteForgottenGroupsQuery,
  noteFreedGroupsQuery,
} from '../../../src/features/limits/queries/note-groups.ts';
import { pruneGroupsQuery } from '../../../src/features/limits/queries/prune-groups.ts';
import { setLimitQuery } from '../../../src/features/limits/queries/set-limit.ts';
import { takeLeaseQuery } from '../../../src/features/limits/queries/take-lease.ts';
import { takeStartsQuery } from '../../../src/features/limits/queries/take-starts.ts';
import { unblockGroupQuery } from '../../../src/features/limits/queries/unblock-group.ts';
import type { Serial } from '../../../src/features/limits/settings/limit-settings.ts';
import { withGrouping } from '../../../src/features/limits/sql/group-statements.ts';
import type { GroupTables } from '../../../src/features/limits/sql/limit-tables.ts';
import { foldMetricsQuery } from '../../../src/features/metrics/queries/fold-metrics.ts';
import { pruneMetricsQuery } from '../../../src/features/metrics/queries/prune-metrics.ts';
import { reportMetricsQuery } from '../../../src/features/metrics/queries/report-metrics.ts';
import { sumMetricsQuery } from '../../../src/features/metrics/queries/sum-metrics.ts';
import { queueMetrics } from '../../../src/features/metrics/schema/index.ts';
import { declareSchedulesQuery } from '../../../src/features/schedules/queries/declare-schedules.ts';
import { findDueSchedulesQuery } from '../../../src/features/schedules/queries/find-due-schedules.ts';
import {
  findScheduleQuery,
  findSchedulesQuery,
} from '../../../src/features/schedules/queries/find-schedules.ts';
import { fireSchedulesQuery } from '../../../src/features/schedules/queries/fire-schedules.ts';
import {
  pauseScheduleQuery,
  resumeScheduleQuery,
} from '../../../src/features/schedules/queries/pause-schedule.ts';
import { removeScheduleQuery } from '../../../src/features/schedules/queries/remove-schedule.ts';
import { setScheduleQuery } from '../../../src/features/schedules/queries/set-schedule.ts';
import {
  forgetSchedulesQuery,
  renewSchedulesQuery,
  tidySchedulesQuery,
} from '../../../src/features/schedules/queries/tidy-schedules.ts';
import type { NewSchedule } from '../../../src/features/schedules/sql/stored-schedule.ts';
import { copyStepsQuery } from '../../../src/features/workflows/queries/copy-steps.ts';
import { deleteLeftRowsQuery } from '../../../src/features/workflows/queries/delete-left-rows.ts';
import { enqueueChildrenQuery } from '../../../src/features/workflows/queries/enqueue-children.ts';
import { findJobWithStepQuery } from '../../../src/features/workflows/queries/find-job-with-step.ts';
import { findLeftRowsQuery } from '../../../src/features/workflows/queries/find-left-rows.ts';
import { findMailboxesQuery } from '../../../src/features/workflows/queries/find-mailboxes.ts';
import { findQueueQuery } from '../../../src/features/workflows/queries/find-queue.ts';
import { findStepNamesQuery } from '../../../src/features/workflows/queries/find-step-names.ts';
import { findStepsQuery } from '../../../src/features/workflows/queries/find-steps.ts';
import { findWaitingJobQuery } from '../../../src/features/workflows/queries/find-waiting-job.ts';
import { finishWaitingJobQuery } from '../../../src/features/workflows/queries/finish-waiting-job.ts';
import { forgetStepsQuery } from '../../../src/features/workflows/queries/forget-steps.ts';
import { lockLiveJobQuery } from '../../../src/features/workflows/queries/lock-live-job.ts';
import { lockMailboxesQuery } from '../../../src/features/workflows/queries/lock-mailboxes.ts';
import { receiveSignalQuery } from '../../../src/features/workflows/queries/receive-signal.ts';
import { recordOneStepQuery } from '../../../src/features/workflows/queries/record-one-step.ts';
import { recordStepsQuery, type StepToRecord } from '../../../src/features/workflows/queries/record-steps.ts';
import { sendSignalQuery } from '../../../src/features/workflows/queries/send-signal.ts';
import { showStepsQuery } from '../../../src/features/workflows/queries/show-steps.ts';
import { unparkJobsQuery } from '../../../src/features/workflows/queries/unpark-jobs.ts';
import {
  queueBatches,
  queueMailboxes,
  queueSteps,
  queueTallies,
  queueWaits,
} from '../../../src/features/workflows/schema/index.ts';
import { hasBegun } from '../../../src/features/workflows/sql/begun-job.ts';
import { AT_ONCE, groupClaimOf } from './groups.ts';

/** What builds a statement that is one of Drizzle's own; it is never sent. */
const builders = drizzle.mock();

/** What the arguments of the statements are made of. */
export interface StatementValues {
  readonly text: string;
  readonly id: number;
  readonly time: Date;
}

export const ordinaryValues: StatementValues = {
  text: 'mail',
  id: 42,
  time: new Date('2024-02-29T12:34:56.789Z'),
};

/** Every statement of the library by the name of its function, in each of its forms. */
export function allStatements(
  tables: QueueTables,
  { text, id, time }: StatementValues = ordinaryValues,
): Readonly<Record<string, SQL>> {
  const held = { queue: text, workerId: id };
  const everything = { queues: undefined, own: [] };
  const job: NewJob = {
    queue: text,
    kind: text,
    payload: JSON.stringify({ text }),
    priority: 5,
    maxAttempts: 20,
    delayMs: 0,
    runAtMs: null,
    uniqueKey: null,
    metadata: JSON.stringify({ text }),
  };
  const keyed = { ...job, uniqueKey: text };
  const differing: NewJob = {
    queue: `${text} 2`,
    kind: `${text} 2`,
    payload: 'null',
    priority: 1,
    maxAttempts: 1,
    delayMs: 1_000,
    runAtMs: time.getTime(),
    uniqueKey: null,
    metadata: '{}',
  };
  const claim = {
    queue: text,
    kinds: [text],
    bands: Array.from({ length: MAX_PRIORITY + 1 }, (_, priority) => ({
      priority,
      floorMs: priority === 5 ? time.getTime() : Number.NEGATIVE_INFINITY,
    })),
    limit: 10,
    workerId: id,
    fromGoneWorkers: false,
  };
  const error = { attempt: 1, name: 'Error', message: text, stack: text };
  const finish: Finish = {
    type: 'finish',
    state: 'completed',
    output: JSON.stringify({ text }),
    error: null,
    keepResult: true,
  };
  const discard: Finish = { ...finish, state: 'discarded', output: null, error };
  const completed = { id, fence: 1, output: JSON.stringify({ text }), keepResult: true };
  const retry: Reschedule = { type: 'reschedule', delayMs: 1_000, attempt: 1, error };
  const giveBack: Reschedule = { type: 'reschedule', delayMs: null, attempt: 0, error: null };
  const selected = {
    mayBeDue: true,
    source: sql`(select 1 as n) as selected`,
    queue: text,
    kind: text,
    maxAttempts: 20,
    payload: sql`jsonb_build_object(${text}::text, n)`,
    priority: sql`${5}`,
    runAt: sql`${time.toISOString()}`,
    uniqueKey: undefined,
    metadata: sql`${JSON.stringify({ text })}::text::jsonb`,
  };
  const worker = { id, name: text, queues: [text], kinds: [text], session: 4_711, node: text };
  const seconds = String(time.getTime() / 1_000);
  const knownWorker = { id, session: 4_711, node: text, started: seconds, seen: seconds };
  const limits = { silentMs: 30_000, frozenMs: 60_000, startRespiteMs: 10_000 };
  const passed = { floorMs: time.getTime(), endMs: time.getTime() + 1_000 };
  const channel = 'queue_wake_queue_jobs';
  const { queueSchedules, queueLimits, queueUsage, queueGroups, queueHolds, queueNotes } = controlTables;
  const limitTables = { queueLimits, queueUsage, queueGroups, queueHolds, queueNotes };
  const grouped = (serial?: Serial): GroupTables =>
    inContext(
      withGrouping({ ...tables, ...limitTables }, limitTables, new Map([[text, { groups: { serial } }]])),
      contextOf(tables),
    );
  const rated = inContext(
    withGrouping(
      { ...tables, ...limitTables },
      limitTables,
      new Map([[text, { rate: { limit: 10, perMs: 1_000 } }]]),
    ),
    contextOf(tables),
  );
  const ofUndeclaredGroups = inContext(
    withGrouping({ ...tables, ...limitTables }, limitTables, undefined),
    contextOf(tables),
  );
  const ofCause = {
    scope: everything,
    ...{ queue: text, kind: text, name: text, cause: text },
    bound: 100,
    finishedBefore: time,
  };
  const byRunAt = {
    search: { kind: text, payload: [], own: [] },
    scope: everything,
    limit: 10,
    excerpt: 240,
  };
  const inOrder = {
    state: 'due',
    bands: [
      { queue: text, group: null, priority: 5 },
      { queue: text, group: text, priority: 5 },
    ],
    after: { runUs: BigInt(time.getTime()) * 1_000n, id },
    bound: 100,
  } as const;
  const groupPage = { queue: text, after: text, limit: 51 };
  const groupClaim = groupClaimOf(id, {
    queue: text,
    kinds: [text],
    starts: undefined,
    limits: { concurrency: 2, rate: { limit: 10, perMs: 1_000 } },
  });
  const override = { concurrency: 2, rate: { limit: 100, perMs: 60_000 } };
  const slice = {
    queue: text,
    filter: {
      kind: text,
      group: text,
      state: 'due',
      created: { after: time, before: time },
      payload: JSON.stringify({ text }),
    },
    ids: [id],
  } as const;
  const control = inContext({ ...tables, queueSchedules }, contextOf(tables));
  const controlOfGroups = inContext({ ...tables, queueSchedules }, contextOf(grouped()));
  const ofGroup: NewJob = { ...job, group: text, cost: 3 };
  const limited = inContext({ ...tables, ...limitTables }, contextOf(tables));
  const debounce = { type: 'debounce', key: text, maxWaitMs: 30_000 } as const;
  const replace = { type: 'replace', key: text, keepRunAt: false } as const;
  const waiting = { type: 'waiting', key: text } as const;
  const throttle = { type: 'throttle', key: text, perMs: 60_000, trailing: false } as const;
  const window = 60_000;
  const keys = { tables, keys: controlTables.queueKeys };
  const schedule: NewSchedule = {
    name: text,
    queue: text,
    kind: text,
    payload: JSON.stringify({ text }),
    settings: JSON.stringify({ priority: 5, maxAttempts: 20, metadata: { text }, own: {} }),
    cron: text,
    everyMs: null,
    timeZone: text,
    startsAtMs: time.getTime(),
    endsAtMs: null,
    catchUp: 'latest',
    overlap: true,
  };
  const firing = {
    name: text,
    revision: id,
    ticks: [time.getTime()],
    passedMs: time.getTime() + 1,
    nextMs: null,
  };
  const wakeUp = { channel, queues: [text], othersNotify: true };
  const wholePage = { kind: undefined, queue: undefined, state: undefined, before: undefined, limit: 51 };
  const page = { kind: text, queue: text, before: id, limit: 51 };
  const known = { tables, metrics: queueMetrics };
  const metricsRow = {
    ...{ report: id, queue: text, kind: text, completed: 3, retried: 1, discarded: 1, cancelled: 0 },
    ...{ snoozed: 0, interrupted: 0, lost: 0, waitMs: 12.5, runMs: 40, wait: { 3: 5 }, run: { 6: 5 } },
  };
  const batchTables = { queueBatches, queueWaits, queueTallies };
  const workflows = { ...tables, queueSteps, queueMailboxes, ...batchTables };
  const workflowsOfGroups = inContext({ ...tables, ...batchTables }, contextOf(grouped()));
  const members = { members: new TalliedEnds(batchTables) };
  const withMembers = inContext(tables, members);
  const withGroupedMembers = inContext(grouped(), members);
  const group = {
    ...{ batchId: id, kind: text, after: [id, id + 1], state: undefined, above: 0 },
    ...{ limit: 101, scope: everything, excerpt: 240 },
  };
  const wait = { id, fence: 1, batchIds: [id, id + 1], failFast: true };
  const missing = { batchId: id, missing: 2, failed: 1, recountedAt: null };
  const plainStep = { id, fence: 1, name: text, kind: 'transaction', tookMs: 12.5, ended: true } as const;
  const steps: [StepToRecord, ...StepToRecord[]] = [
    { id, fence: 1, name: text, kind: 'run', output: JSON.stringify({ text }), tookMs: 12.5, ended: true },
    { id, fence: 1, name: `${text} 2`, kind: 'sleep', delayMs: 1_000, tookMs: 0, ended: false },
    { id, fence: 1, name: `${text} 3`, kind: 'sleep', until: time, tookMs: 0, ended: false },
    {
      id,
      fence: 1,
      name: `${text} 4`,
      kind: 'run',
      error: { name: text, message: text },
      tookMs: 1,
      ended: true,
    },
  ];
  const wanted = { id, fence: 1, name: text, signal: text, at: 1, timeoutMs: 1_000 };
  const sent = {
    to: { queue: text, id },
    name: text,
    signalId: text,
    value: JSON.stringify({ text }),
    key: undefined,
  };
  return {
    findMailboxesQuery: findMailboxesQuery(workflows, id),
    findStepsQuery: findStepsQuery(workflows, { ids: [id, id + 1], queue: text }),
    'findStepsQuery, of any queue': findStepsQuery(workflows, { ids: [id], queue: undefined }),
    forgetStepsQuery: forgetStepsQuery(workflows, { queue: text, id, from: text }),
    findQueueQuery: findQueueQuery(workflows, id),
    findJobWithStepQuery: findJobWithStepQuery(workflows, id, text),
    findStepNamesQuery: findStepNamesQuery(workflows, { queue: text, id }, 51),
    copyStepsQuery: copyStepsQuery(workflows, { queue: text, id, from: text, to: id + 1 }),
    lockLiveJobQuery: lockLiveJobQuery(workflows, { queue: text, id }),
    lockMailboxesQuery: lockMailboxesQuery(workflows, { queue: text, id }),
    'lockMailboxesQuery, of a name': lockMailboxesQuery(workflows, { queue: text, id, name: text }),
    deleteLeftRowsQuery: deleteLeftRowsQuery(workflows, 'queueSteps', text, [id, id + 1]),
    findLeftRowsQuery: findLeftRowsQuery(workflows, 'queueSteps', undefined, 1_000),
    'findLeftRowsQuery, further mailboxes': findLeftRowsQuery(
      workflows,
      'queueMailboxes',
      { jobId: id, queue: text, name: text },
      1_000,
    ),
    receiveSignalQuery: receiveSignalQuery(workflows, held, wanted, 'briefly'),
    'receiveSignalQuery, in a transaction': receiveSignalQuery(
      workflows,
      { ...held, workerId: null },
      { ...wanted, timeoutMs: undefined },
      'wait',
    ),
    'receiveSignalQuery, behind another step': receiveSignalQuery(
      workflows,
      held,
      { ...wanted, isBehind: true },
      'briefly',
    ),
    'receiveSignalQuery, of several': receiveSignalQuery(
      workflows,
      held,
      { ...wanted, timeoutMs: undefined, first: text },
      'briefly',
    ),
    recordStepsQuery: recordStepsQuery(workflows, held, steps, 'briefly'),
    'recordStepsQuery, of free jobs': recordStepsQuery(workflows, held, steps, 'skip'),
    'recordStepsQuery, in a transaction': recordStepsQuery(workflows, held, steps.slice(0, 1), 'wait'),
    recordOneStepQuery: recordOneStepQuery(workflows, held, steps[0], 'briefly'),
    'recordOneStepQuery, in a transaction': recordOneStepQuery(workflows, held, steps[0], 'wait'),
    'recordOneStepQuery, as text': recordOneStepQuery(workflows, held, plainStep, 'wait', { asText: true }),
    'recordOneStepQuery, of a small table': recordOneStepQuery(workflows, held, steps[0], 'briefly', {
      ifTableIs: 'small',
    }),
    'recordOneStepQuery, of a grown table': recordOneStepQuery(workflows, held, steps[0], 'briefly', {
      ifTableIs: 'grown',
    }),
    'recordOneStepQuery, once': recordOneStepQuery(workflows, held, steps[0], 'wait', { isOnce: true }),
    findWaitingJobQuery: findWaitingJobQuery(workflows, { queue: text, id, kind: text }),
    finishWaitingJobQuery: finishWaitingJobQuery(inContext(workflows, members), {
      to: { queue: text, id, kind: text },
      output: JSON.stringify({ text }),
      keepResult: true,
    }),
    'finishWaitingJobQuery, outcome, by unique key': finishWaitingJobQuery(inContext(workflows, members), {
      to: { queue: text, kind: text, uniqueKey: text },
      output: undefined,
      keepResult: 'outcome',
    }),
    'finishWaitingJobQuery, no result, of groups': finishWaitingJobQuery(
      inContext({ ...workflowsOfGroups, queueSteps, queueMailboxes }, members),
      { to: { queue: text, id, kind: text }, output: undefined, keepResult: false },
    ),
    showStepsQuery: showStepsQuery(workflows, { id, queue: text, cut: 1_000, limit: 200 }),
    'showStepsQuery, one': showStepsQuery(workflows, { id, queue: text, name: text, cut: 1_000, limit: 1 }),
    sendSignalQuery: sendSignalQuery(workflows, sent),
    'sendSignalQuery, once, by unique key': sendSignalQuery(workflows, {
      ...sent,
      to: { queue: text, kind: text, uniqueKey: text },
      key: text,
    }),
    addWaitsQuery: addWaitsQuery(workflows, [{ batchId: id, jobId: id, queue: text, policy: 'parent' }]),
    cancelBatchesQuery: cancelBatchesQuery(workflows, [id, id + 1], text),
    cancelFlowQuery: cancelFlowQuery(workflows, id, text),
    growBatchQuery: growBatchQuery(workflows, id, 2),
    countBatchQuery: countBatchQuery(workflows, id),
    findLeftBatchesQuery: findLeftBatchesQuery(workflows, { after: id, until: undefined }),
    deleteLeftBatchesQuery: deleteLeftBatchesQuery(workflows, [id, id + 1]),
    endMembersQuery: endMembersQuery(workflows, { queue: text, ids: [id], channel }),
    'endMembersQuery, of groups': endMembersQuery(workflowsOfGroups, { queue: text, ids: [id], channel }),
    findUnclaimedQuery: findUnclaimedQuery(workflows, [id, id + 1], [id], 0),
    endUnclaimedQuery: endUnclaimedQuery(inContext(workflows, members), { queue: text, ids: [id] }),
    findUnwokenQuery: findUnwokenQuery(workflows, [id, id + 1], 0),
    wakeWaitersQuery: wakeWaitersQuery(workflows, { queue: text, ids: [id], channel }),
    'wakeWaitersQuery, of groups': wakeWaitersQuery(workflowsOfGroups, { queue: text, ids: [id], channel }),
    findEndsQuery: findEndsQuery(workflows, [id], undefined),
    'findEndsQuery, of a kind': findEndsQuery(workflows, [id, id + 1], text),
    findFlowQuery: findFlowQuery(workflows, id),
    findFlowBatchesQuery: findFlowBatchesQuery(workflows, id),
    findFlowGroupsQuery: findFlowGroupsQuery(workflows, id, everything),
    'findFlowGroupsQuery, in a scope': findFlowGroupsQuery(workflows, id, { queues: [text], own: [] }),
    findFlowOfJobQuery: findFlowOfJobQuery(workflows, id),
    findFlowsQuery: findFlowsQuery(workflows, {
      ...{ state: undefined, before: undefined, limit: 51, searchLimit: 10_000 },
    }),
    'findFlowsQuery, of failed ones': findFlowsQuery(workflows, {
      ...{ state: 'failed', before: id, limit: 51, searchLimit: 10_000 },
    }),
    findGroupJobsQuery: findGroupJobsQuery(workflows, group),
    'findGroupJobsQuery, in a state': findGroupJobsQuery(workflows, { ...group, state: 'discarded' }),
    'findGroupJobsQuery, of any kind': findGroupJobsQuery(workflows, { ...group, kind: undefined }),
    findLiveMembersQuery: findLiveMembersQuery(workflows, [id, id + 1]),
    findMembersQuery: findMembersQuery(workflows, [id], 0),
    findAnyPlaceQuery: findAnyPlaceQuery(workflows.queueBatches, workflows.queueBatches.id),
    'findAnyPlaceQuery, of steps': findAnyPlaceQuery(workflows.queueSteps, workflows.queueSteps.jobId),
    findOpenBatchesQuery: findOpenBatchesQuery(workflows, id, 1_000),
    findTalliedQuery: findTalliedQuery(workflows, [id]),
    findWaitedQuery: findWaitedQuery(workflows, { id, queue: text }),
    foldTalliesQuery: foldTalliesQuery(workflows, { ids: [id], channel, locks: 'briefly' }),
    'foldTalliesQuery, of any batch': foldTalliesQuery(workflows, { channel: undefined, locks: 'wait' }),
    'foldTalliesQuery, without waking': foldTalliesQuery(workflows, {
      ...{ ids: [id], channel, locks: 'briefly', wakes: false },
    }),
    'foldTalliesQuery, of groups': foldTalliesQuery(workflowsOfGroups, { channel, locks: 'briefly' }),
    countOpenFlowsQuery: countOpenFlowsQuery(workflows),
    isBlockedQuery: isBlockedQuery(workflows, { id, queue: text }),
    openBatchesQuery: openBatchesQuery(workflows, [2, 3], false),
    'openBatchesQuery, of a flow': openBatchesQuery(workflows, [2, 3], true),
    findToldMembersQuery: findToldMembersQuery(workflows, id),
    lockFlowQuery: lockFlowQuery(workflows, id),
    lockBatchesQuery: lockBatchesQuery(workflows, [id, id + 1]),
    setLockTimeoutQuery: setLockTimeoutQuery('100ms'),
    spareMembersQuery: spareMembersQuery(workflows, { queue: text, ids: [id] }),
    parkWaitersQuery: parkWaitersQuery(workflows, {
      flowId: id,
      unbegun: [id],
      hasBegun: hasBegun(workflows),
    }),
    reopenBatchesQuery: reopenBatchesQuery(workflows, id),
    reopenReturnedQuery: reopenReturnedQuery(workflows, held, wait, 'briefly'),
    'reopenReturnedQuery, in a transaction': reopenReturnedQuery(
      workflows,
      { ...held, workerId: null },
      wait,
      'wait',
    ),
    sealBatchQuery: sealBatchQuery(workflows, id, 3),
    tallyMissingQuery: tallyMissingQuery(workflows, missing),
    waitForBatchesQuery: waitForBatchesQuery(workflows, held, wait, 'briefly'),
    'waitForBatchesQuery, in a transaction': waitForBatchesQuery(
      workflows,
      { ...held, workerId: null },
      { ...wait, failFast: false },
      'wait',
    ),
    enqueueChildrenQuery: enqueueChildrenQuery(
      { ...workflows, queueSteps, queueMailboxes },
      held,
      { step: { id, fence: 1, name: text, tookMs: 1 }, jobs: [job], policy: 'parent', wakeUp },
      'briefly',
    ),
    'enqueueChildrenQuery, several in a transaction': enqueueChildrenQuery(
      { ...workflows, queueSteps, queueMailboxes },
      { ...held, workerId: null },
      {
        step: { id, fence: 1, name: text, tookMs: 1 },
        jobs: [job, { ...differing, queue: text }],
        policy: 'detached',
        wakeUp: undefined,
      },
      'wait',
    ),
    'enqueueChildrenQuery, of groups': enqueueChildrenQuery(
      inContext({ ...workflowsOfGroups, queueSteps, queueMailboxes }, contextOf(grouped())),
      held,
      { step: { id, fence: 1, name: text, tookMs: 1 }, jobs: [ofGroup], policy: 'parent', wakeUp },
      'briefly',
    ),
    'insertJobsQuery, of members': insertJobsQuery(tables, [{ ...job, batch: id }, differing], wakeUp),
    'insertJobsQuery, that wait': insertJobsQuery(
      grouped(),
      [{ ...ofGroup, batch: id, blockers: 2 }],
      wakeUp,
    ),
    'insertJobsQuery, that wait until their deadlines': insertJobsQuery(
      tables,
      [
        { ...job, batch: id, blockers: 2, delayMs: 1_000 },
        { ...differing, batch: id, blockers: 1, delayMs: 0 },
      ],
      wakeUp,
    ),
    'claimJobsQuery, of members': claimJobsQuery(withMembers, claim),
    'completeOneJobQuery, of members': completeOneJobQuery(withMembers, held, completed),
    'finishJobsQuery, of members': finishJobsQuery(withMembers, held, [
      { id, fence: 1, transition: finish },
      { id: id + 1, fence: 1, transition: discard },
    ]),
    'finishJobsQuery, of members in a small table': finishJobsQuery(
      withMembers,
      held,
      [{ id, fence: 1, transition: finish }],
      { locks: 'briefly', ifTableIs: 'small' },
    ),
    'finishJobsQuery, of members in groups': finishJobsQuery(withGroupedMembers, held, [
      { id, fence: 1, transition: finish },
      { id: id + 1, fence: 1, transition: { ...discard, state: 'cancelled' } },
    ]),
    'rescheduleJobsQuery, of members': rescheduleJobsQuery(withMembers, held, [
      { id, fence: 1, transition: { type: 'reschedule', delayMs: 1_000, attempt: 1, error: null } },
      {
        id: id + 1,
        fence: 1,
        transition: { type: 'reschedule', delayMs: null, attempt: 0, error: null, unbegun: true },
      },
    ]),
    'cancelJobQuery, of members': cancelJobQuery(withMembers, { id, queue: text, reason: error }),
    'redriveJobsQuery, of members': redriveJobsQuery(withMembers, {}),
    countJobsQuery: countJobsQuery(tables),
    countResultsQuery: countResultsQuery(tables),
    countRetryingQuery: countRetryingQuery(tables),
    'countRetryingQuery, of queues': countRetryingQuery(tables, { queues: [text], own: [] }),
    countDiscardedQuery: countDiscardedQuery(tables, { scope: everything, hours: 24, bound: 100 }),
    'countDiscardedQuery, of queues': countDiscardedQuery(tables, {
      scope: { queues: [text], own: [] },
      hours: 24,
      bound: 100,
    }),
    groupRetryingQuery: groupRetryingQuery(tables, { scope: everything, bound: 100, limit: 10 }),
    countSomeJobsQuery: countSomeJobsQuery(tables, [text]),
    sizeOfTablesQuery: sizeOfTablesQuery(tables, queueMetrics),
    estimatedJobsQuery: estimatedJobsQuery(tables, text, 'due'),
    'estimatedJobsQuery, live': estimatedJobsQuery(tables, text, 'live'),
    'estimatedJobsQuery, running': estimatedJobsQuery(tables, text, 'running'),
    findCrewsQuery: findCrewsQuery(tables),
    findHeadsQuery: findHeadsQuery(tables, 1_000),
    foldMetricsQuery: foldMetricsQuery(known),
    inspectVitalsQuery: inspectVitalsQuery(tables),
    pruneMetricsQuery: pruneMetricsQuery(known, 1_000),
    reportMetricsQuery: reportMetricsQuery(known, id, [metricsRow]),
    sumMetricsQuery: sumMetricsQuery(known, 15, false),
    'sumMetricsQuery, by hour': sumMetricsQuery(known, 1_440, true),
    backendPidQuery,
    beatWorkerQuery: beatWorkerQuery(tables, worker),
    beginJobsQuery: beginJobsQuery(tables, held, [{ id, fence: 1 }]),
    'beginJobsQuery, soon on disk': beginJobsQuery(tables, held, [{ id, fence: 1 }], {
      locks: 'briefly',
      onDisk: 'soon',
    }),
    'beginJobsQuery, of a small table': beginJobsQuery(tables, held, [{ id, fence: 1 }], {
      locks: 'briefly',
      onDisk: 'soon',
      ifTableIs: 'small',
    }),
    'beginJobsQuery, of a grown table': beginJobsQuery(tables, held, [{ id, fence: 1 }], {
      locks: 'briefly',
      onDisk: 'soon',
      ifTableIs: 'grown',
    }),
    'beginJobsQuery, of free rows': beginJobsQuery(tables, held, [{ id, fence: 1 }], { locks: 'skip' }),
    cancelJobQuery: cancelJobQuery(tables, { id, queue: text, reason: error }),
    'cancelJobQuery, forced': cancelJobQuery(tables, { id, queue: text, reason: error, force: { channel } }),
    checkWorkersQuery: checkWorkersQuery(tables, { worker, beat: false, limits }),
    'checkWorkersQuery, beat': checkWorkersQuery(tables, { worker, beat: true, limits }),
    admitGroupsQuery: admitGroupsQuery(grouped(), text),
    claimGroupedJobsQuery: claimGroupedJobsQuery(grouped(), groupClaim),
    'claimGroupedJobsQuery, of small tables': claimGroupedJobsQuery(grouped(), {
      ...groupClaim,
      ifTablesAre: 'small',
    }),
    'claimGroupedJobsQuery, of a grown table': claimGroupedJobsQuery(grouped(), {
      ...groupClaim,
      ifTablesAre: 'grown',
    }),
    'claimGroupedJobsQuery, one after the other': claimGroupedJobsQuery(grouped('end'), {
      ...groupClaim,
      limits: { run: 100 },
    }),
    'claimGroupedJobsQuery, by rates': claimGroupedJobsQuery(grouped(), {
      ...groupClaim,
      limits: { run: undefined, rate: { limit: 10, perMs: 1_000 } },
      starts: AT_ONCE,
      withCosts: true,
    }),
    'claimGroupedJobsQuery, one after the other by rates': claimGroupedJobsQuery(grouped('end'), {
      ...groupClaim,
      limits: { run: 100, rate: { limit: 10, perMs: 1_000 } },
      starts: AT_ONCE,
    }),
    noteFreedGroupsQuery: noteFreedGroupsQuery(grouped(), text),
    noteForgottenGroupsQuery: noteForgottenGroupsQuery(grouped(), text, text),
    pruneGroupsQuery: pruneGroupsQuery(grouped(), { queue: text, after: text, ratePerMs: 1_000 }),
    adoptJobsQuery: adoptJobsQuery(grouped(), text),
    'adoptJobsQuery, by id': adoptJobsQuery(grouped(), text, [1, 2]),
    findPlainJobsQuery: findPlainJobsQuery(grouped(), text),
    findGroupsQuery: findGroupsQuery(grouped(), groupPage, [text], false),
    'findGroupsQuery, in order': findGroupsQuery(grouped(), groupPage, [text], true),
    findStoppedGroupsQuery: findStoppedGroupsQuery(grouped(), [text]),
    unblockGroupQuery: unblockGroupQuery(grouped(), text, text),
    endHandlerHoldsQuery: endHandlerHoldsQuery(grouped(), { queue: text, workerId: 1 }, [
      { id: 1, group: text },
      { id: 2, group: text },
    ]),
    findDueGroupsQuery: findDueGroupsQuery(grouped(), [{ queue: text }, { queue: `${text}, too` }]),
    'findDueGroupsQuery, of one queue': findDueGroupsQuery(grouped(), [{ queue: text }]),
    'claimGroupedJobsQuery, few of a kind': claimGroupedJobsQuery(grouped(), {
      ...groupClaim,
      rooms: new Map([[text, 1]]),
    }),
    'claimGroupedJobsQuery, one after the other, few of a kind': claimGroupedJobsQuery(grouped('end'), {
      ...groupClaim,
      limits: { run: 100 },
      rooms: new Map([[text, 1]]),
    }),
    'claimGroupedJobsQuery, without some': claimGroupedJobsQuery(grouped(), {
      ...groupClaim,
      without: [id, id + 1],
    }),
    'claimGroupedJobsQuery, that seeks': claimGroupedJobsQuery(grouped(), { ...groupClaim, seeks: true }),
    'claimGroupedJobsQuery, one after the other, that seeks': claimGroupedJobsQuery(grouped('end'), {
      ...groupClaim,
      limits: { run: 100 },
      seeks: true,
      without: [id, id + 1],
    }),
    findDueIdsQuery: findDueIdsQuery(tables, { ...claim, without: [id, id + 1] }),
    findGroupedDueIdsQuery: findGroupedDueIdsQuery(grouped(), { ...groupClaim, without: [id, id + 1] }),
    'findGroupedDueIdsQuery, in order': findGroupedDueIdsQuery(grouped('end'), {
      ...groupClaim,
      limits: { run: 100 },
      seeks: true,
      passed: 10_000,
    }),
    findPassedOverQuery: findPassedOverQuery(tables, 1_000),
    findPassedOverInShardsQuery: findPassedOverInShardsQuery(tables, 1_000),
    findFirstDueQuery: findFirstDueQuery(tables, { queue: text, priority: 5 }),
    findRefusedJobsQuery: findRefusedJobsQuery(tables, { queue: text, ids: [id, id + 1] }),
    tryClaimQuery: tryClaimQuery(tables, { queue: text, ids: [id, id + 1], workerId: id }),
    setAsideJobQuery: setAsideJobQuery(tables, { queue: text, id, error }),
    claimJobsQuery: claimJobsQuery(tables, { ...claim, beginning: 1 }),
    'claimJobsQuery, with costs': claimJobsQuery(tables, { ...claim, withCosts: true }),
    'claimJobsQuery, without some': claimJobsQuery(tables, {
      ...claim,
      beginning: 1,
      without: [id, id + 1],
    }),
    'claimJobsQuery, of a small table': claimJobsQuery(tables, {
      ...claim,
      beginning: 1,
      ifTableIs: 'small',
    }),
    'claimJobsQuery, of a grown table': claimJobsQuery(tables, {
      ...claim,
      beginning: 1,
      ifTableIs: 'grown',
    }),
    'claimJobsQuery, beginning many': claimJobsQuery(tables, {
      ...claim,
      beginning: { atMost: 3, provenKinds: [text] },
    }),
    'claimJobsQuery, aging': claimJobsQuery(tables, {
      ...claim,
      bands: [
        { priority: 9, floorMs: Number.NEGATIVE_INFINITY, ceilingMs: time.getTime() },
        { priority: 0, floorMs: time.getTime() },
      ],
      beginning: 1,
    }),
    'claimJobsQuery, among': claimJobsQuery(tables, {
      ...claim,
      beginning: 1,
      ids: [id, id + 1],
      fromGoneWorkers: true,
    }),
    'claimJobsQuery, held by lock': claimJobsQuery(tables, {
      ...claim,
      workerId: null,
      limit: 1,
      fromGoneWorkers: true,
      heedPauses: true,
    }),
    'checkWorkersQuery, of known workers': checkWorkersQuery(
      tables,
      { worker, beat: false, limits },
      knownWorkers([knownWorker]),
    ),
    findWorkersQuery: findWorkersQuery(tables),
    removeUnseenWorkerQuery: removeUnseenWorkerQuery(tables, id, knownWorker.seen),
    testWorkersQuery: testWorkersQuery(tables, [knownWorker], limits),
    databaseStateQuery: databaseStateQuery(tables),
    declareSchedulesQuery: declareSchedulesQuery(control, { workerId: id, schedules: [schedule], unfit: [] }),
    findDueSchedulesQuery: findDueSchedulesQuery(control, {
      declared: [text],
      kinds: [text],
      except: [text],
      horizonMs: 120_000,
      limit: 100,
    }),
    findScheduleQuery: findScheduleQuery(control, text),
    findSchedulesQuery: findSchedulesQuery(control, { kind: text, after: text, limit: 51 }),
    'findSchedulesQuery, of queues': findSchedulesQuery(control, { queues: [text], limit: 51 }),
    'findSchedulesQuery, of a place': findSchedulesQuery(control, { queues: [text], offset: 50, limit: 51 }),
    fireSchedulesQuery: fireSchedulesQuery(control, [firing], channel),
    'fireSchedulesQuery, of groups': fireSchedulesQuery(controlOfGroups, [firing], channel),
    pauseScheduleQuery: pauseScheduleQuery(control, text),
    removeScheduleQuery: removeScheduleQuery(control, text),
    resumeScheduleQuery: resumeScheduleQuery(control, text),
    setScheduleQuery: setScheduleQuery(control, schedule),
    tidySchedulesQuery: tidySchedulesQuery(control, {
      declared: [text],
      renewMs: 3_600_000,
      forgetMs: 604_800_000,
    }),
    renewSchedulesQuery: renewSchedulesQuery(control, { declared: [text], renewMs: 3_600_000 }),
    forgetSchedulesQuery: forgetSchedulesQuery(control, { declared: [text], forgetMs: 604_800_000 }),
    findDueQuery: findDueQuery(tables, {
      looks: [
        { queue: text, floorMs: time.getTime() },
        { queue: `${text}, too`, floorMs: Number.NEGATIVE_INFINITY },
      ],
      kinds: [text],
      horizonMs: 1_600,
    }),
    'findDueQuery, of one queue': findDueQuery(tables, {
      looks: [{ queue: text, floorMs: time.getTime() }],
      kinds: [text],
      horizonMs: 1_600,
    }),
    'findDueQuery, of a small table': findDueQuery(tables, {
      looks: [{ queue: text, floorMs: time.getTime() }],
      kinds: [text],
      horizonMs: 1_600,
      ifTableIs: 'small',
    }),
    'findDueQuery, of a grown table': findDueQuery(tables, {
      looks: [{ queue: text, floorMs: time.getTime() }],
      kinds: [text],
      horizonMs: 1_600,
      ifTableIs: 'grown',
    }),
    'findDueQuery, of many queues': findDueQuery(tables, {
      looks: Array.from({ length: 101 }, (_, n) => ({ queue: `${text} ${n}`, floorMs: time.getTime() })),
      kinds: [text],
      horizonMs: 1_600,
    }),
    findFatesQuery: findFatesQuery(tables, text, [{ id, fence: 3 }]),
    hasCancelledQuery: hasCancelledQuery(tables, { id, fence: 1, queue: text }),
    findHeldJobsQuery: findHeldJobsQuery(tables, held, [{ id, fence: 1 }]),
    findUnknownJobsQuery: findUnknownJobsQuery(tables, {
      queue: text,
      workerId: id,
      except: [{ id, fence: 7 }],
      ids: { after: id, last: id + 1 },
    }),
    findPageEndQuery: findPageEndQuery(tables, { queue: text, after: id }),
    findJobQuery: findJobQuery(tables, id),
    findJobsQuery: findJobsQuery(tables, [id, id + 1]),
    findLiveIdsQuery: findLiveIdsQuery(tables, [id, id + 1]),
    findOverlookedQuery: findOverlookedQuery(tables, {
      looks: [
        {
          queue: text,
          passed: [passed, passed],
          after: { priority: 0, runAtMs: time.getTime() + 0.125, id },
        },
        { queue: `${text}, too`, passed: [passed], after: undefined },
      ],
      kinds: [text],
      workerId: id,
      slice: 2_000,
    }),
    'findOverlookedQuery, of one queue': findOverlookedQuery(tables, {
      looks: [{ queue: text, passed: [passed, passed], after: undefined }],
      kinds: [text],
      workerId: id,
      slice: 2_000,
    }),
    'findOverlookedQuery, of a small table': findOverlookedQuery(tables, {
      looks: [{ queue: text, passed: [passed, passed], after: undefined }],
      kinds: [text],
      workerId: id,
      slice: 2_000,
      ifTableIs: 'small',
    }),
    'findOverlookedQuery, of a grown table': findOverlookedQuery(tables, {
      looks: [{ queue: text, passed: [passed, passed], after: undefined }],
      kinds: [text],
      workerId: id,
      slice: 2_000,
      ifTableIs: 'grown',
    }),
    findPausesQuery: findPausesQuery(tables),
    findRequestsQuery: findRequestsQuery(tables, {
      workerId: id,
      queues: [text, `${text}, too`],
      jobs: [{ id, fence: 1, queue: text }],
    }),
    'findRequestsQuery, no job': findRequestsQuery(tables, { workerId: id, queues: [text], jobs: [] }),
    jobRequestsQuery: jobRequestsQuery(tables, id, [{ id, fence: 1, queue: text }]),
    findSilentWorkersQuery: findSilentWorkersQuery(tables, 300_000),
    findServedQueuesQuery: findServedQueuesQuery(tables),
    hasGroupsQuery: hasGroupsQuery(tables, 'q'),
    findStandingJobsQuery: findStandingJobsQuery(tables, [keyed]),
    'findStandingJobsQuery, waiting': findStandingJobsQuery(tables, [{ ...job, rule: waiting }]),
    completeOneJobQuery: completeOneJobQuery(tables, held, completed),
    'completeOneJobQuery, as text': completeOneJobQuery(
      tables,
      held,
      { ...completed, output: undefined },
      true,
    ),
    'completeOneJobQuery, outcome, as text': completeOneJobQuery(
      tables,
      held,
      { ...completed, output: undefined, keepResult: 'outcome' },
      true,
    ),
    'completeOneJobQuery, no result': completeOneJobQuery(tables, held, { ...completed, keepResult: false }),
    'completeOneJobQuery, no result, as text': completeOneJobQuery(
      tables,
      held,
      { ...completed, output: undefined, keepResult: false },
      true,
    ),
    'completeOneJobQuery, of groups': completeOneJobQuery(grouped(), held, completed),
    'completeOneJobQuery, no result, of groups': completeOneJobQuery(grouped(), held, {
      ...completed,
      keepResult: false,
    }),
    finishJobsQuery: finishJobsQuery(tables, held, [
      { id, fence: 1, transition: finish },
      { id: id + 1, fence: 2, transition: discard },
    ]),
    'finishJobsQuery, outcomes': finishJobsQuery(tables, held, [
      { id, fence: 1, transition: { ...finish, keepResult: 'outcome' } },
    ]),
    'finishJobsQuery, some outcomes': finishJobsQuery(tables, held, [
      { id, fence: 1, transition: { ...finish, keepResult: 'outcome' } },
      { id: id + 1, fence: 2, transition: discard },
    ]),
    'finishJobsQuery, only in a transaction': finishJobsQuery(
      tables,
      held,
      [{ id, fence: 1, transition: finish }],
      { onlyInTransaction: true },
    ),
    'finishJobsQuery, waiting briefly': finishJobsQuery(
      tables,
      held,
      [{ id, fence: 1, transition: finish }],
      {
        locks: 'briefly',
      },
    ),
    'finishJobsQuery, of a small table': finishJobsQuery(
      tables,
      held,
      [{ id, fence: 1, transition: finish }],
      { locks: 'briefly', ifTableIs: 'small' },
    ),
    'finishJobsQuery, of a grown table': finishJobsQuery(
      tables,
      held,
      [{ id, fence: 1, transition: { ...finish, keepResult: false } }],
      { locks: 'briefly', ifTableIs: 'grown' },
    ),
    'finishJobsQuery, of free rows': finishJobsQuery(tables, held, [{ id, fence: 1, transition: finish }], {
      locks: 'skip',
    }),
    'finishJobsQuery, of free rows that are discarded': finishJobsQuery(
      tables,
      held,
      [{ id, fence: 1, transition: discard }],
      { locks: 'skip' },
    ),
    'finishJobsQuery, of groups': finishJobsQuery(grouped(), held, [{ id, fence: 1, transition: finish }]),
    'finishJobsQuery, of groups, only in a transaction': finishJobsQuery(
      grouped(),
      held,
      [{ id, fence: 1, transition: finish }],
      { onlyInTransaction: true },
    ),
    'finishJobsQuery, of groups that stop': finishJobsQuery(grouped('success'), held, [
      { id, fence: 1, transition: discard },
    ]),
    'rescheduleJobsQuery, of groups': rescheduleJobsQuery(grouped(), held, [
      { id, fence: 1, transition: retry },
    ]),
    'rescheduleJobsQuery, of groups that keep their order': rescheduleJobsQuery(grouped('end'), held, [
      { id, fence: 1, transition: retry },
    ]),
    'releaseJobsQuery, of groups': releaseJobsQuery(grouped(), { queue: text, workerId: id }, [
      { id, fence: 7 },
    ]),
    'releaseJobsQuery, after a failover': releaseJobsQuery(
      tables,
      { queue: text, workerId: id, mayHaveBegun: true },
      [{ id, fence: 7 }],
    ),
    cancelJobsQuery: cancelJobsQuery(tables, { ...slice, reason: { name: text, message: text } }),
    'cancelJobsQuery, of groups, forced': cancelJobsQuery(grouped(), {
      ...slice,
      filter: {},
      reason: { name: text, message: text },
      force: { channel },
    }),
    requestCancelsQuery: requestCancelsQuery(tables, { ...slice, reason: text }),
    findCancellableQuery: findCancellableQuery(tables, {
      filter: {},
      force: true,
      after: id,
      until: id + 1,
      limit: 10,
    }),
    'findCancellableQuery, filtered': findCancellableQuery(tables, {
      filter: { ...slice.filter, ids: [id], queue: text },
      force: false,
      after: id,
      until: id + 1,
      limit: 10,
    }),
    'cancelJobQuery, of groups': cancelJobQuery(grouped(), { id, queue: text, reason: error }),
    insertJobsQuery: insertJobsQuery(tables, [job]),
    'insertJobsQuery, unique, waking': insertJobsQuery(tables, [keyed], wakeUp),
    'insertJobsQuery, scheduled': insertJobsQuery(tables, [{ ...job, delayMs: 1_000 }]),
    'insertJobsQuery, several': insertJobsQuery(tables, [job, job]),
    'insertJobsQuery, several, waking': insertJobsQuery(tables, [job, job], wakeUp),
    'insertJobsQuery, at times, waking': insertJobsQuery(
      tables,
      [job, { ...job, runAtMs: time.getTime() }],
      wakeUp,
    ),
    'insertJobsQuery, differing, waking': insertJobsQuery(tables, [job, differing], wakeUp),
    'insertJobsQuery, of groups': insertJobsQuery(grouped(), [ofGroup]),
    'insertJobsQuery, of groups, waking': insertJobsQuery(grouped(), [ofGroup, differing], wakeUp),
    insertKeyedJobsQuery: insertKeyedJobsQuery(tables, [keyed, { ...job, runAtMs: time.getTime() }]),
    'insertKeyedJobsQuery, waking': insertKeyedJobsQuery(tables, [keyed, job], wakeUp),
    'insertKeyedJobsQuery, of groups': insertKeyedJobsQuery(grouped(), [
      { ...ofGroup, uniqueKey: text },
      job,
    ]),
    insertLimitedJobsQuery: insertLimitedJobsQuery(keys, window, [{ ...job, rule: throttle }]),
    'insertLimitedJobsQuery, of groups, waking': insertLimitedJobsQuery(
      { ...keys, tables: grouped() },
      window,
      [
        { ...ofGroup, rule: throttle },
        { ...differing, rule: { ...throttle, key: `${text} 2` } },
      ],
      wakeUp,
    ),
    insertTrailingJobsQuery: insertTrailingJobsQuery(keys, window, [{ ...job, rule: throttle }]),
    'insertTrailingJobsQuery, of groups, waking': insertTrailingJobsQuery(
      { ...keys, tables: grouped() },
      window,
      [{ ...ofGroup, rule: throttle }],
      wakeUp,
    ),
    'insertTrailingJobsQuery, of rates': insertTrailingJobsQuery({ ...keys, tables: rated }, window, [
      { ...job, rule: throttle },
    ]),
    insertWaitingJobsQuery: insertWaitingJobsQuery(tables, waiting, [{ ...job, rule: waiting }]),
    'insertWaitingJobsQuery, debouncing, waking': insertWaitingJobsQuery(
      tables,
      debounce,
      [
        { ...job, rule: debounce },
        { ...job, rule: { ...debounce, key: `${text} 2` } },
      ],
      wakeUp,
    ),
    'insertWaitingJobsQuery, replacing, of groups': insertWaitingJobsQuery(grouped(), replace, [
      { ...ofGroup, rule: replace },
    ]),
    'insertWaitingJobsQuery, replacing, of rates': insertWaitingJobsQuery(rated, replace, [
      { ...job, rule: replace },
    ]),
    'insertWaitingJobsQuery, replacing, keeping': insertWaitingJobsQuery(
      tables,
      { ...replace, keepRunAt: true },
      [{ ...job, rule: replace }],
    ),
    insertOneJobQuery: insertOneJobQuery(builders, tables, job).getSQL(),
    'insertOneJobQuery, unique, waking': insertOneJobQuery(builders, tables, keyed, wakeUp).getSQL(),
    'insertOneJobQuery, of groups, waking': insertOneJobQuery(builders, grouped(), ofGroup, wakeUp).getSQL(),
    insertSelectedJobsQuery: insertSelectedJobsQuery(tables, selected),
    'insertSelectedJobsQuery, keyed': insertSelectedJobsQuery(tables, {
      ...selected,
      uniqueKey: sql`n::text`,
    }),
    'insertSelectedJobsQuery, waking': insertSelectedJobsQuery(tables, selected, wakeUp),
    'insertSelectedJobsQuery, of groups': insertSelectedJobsQuery(grouped(), {
      ...selected,
      group: sql`nullif((n::text)::text, '')`,
      cost: sql`${3}`,
    }),
    'insertSelectedJobsQuery, of groups, keyed': insertSelectedJobsQuery(grouped(), {
      ...selected,
      uniqueKey: sql`n::text`,
    }),
    inspectServerQuery,
    inspectTableQuery: inspectTableQuery(tables.queueJobs),
    listJobsQuery: listJobsQuery(tables, wholePage),
    'listJobsQuery, live': listJobsQuery(tables, { ...page, state: 'due' }),
    'listJobsQuery, finished': listJobsQuery(tables, { ...page, state: 'discarded' }),
    'listJobsQuery, searched': listJobsQuery(tables, {
      ...wholePage,
      payload: JSON.stringify({ text }),
      created: { after: time, before: time },
      searchLimit: 100_000,
    }),
    'listJobsQuery, searched, finished': listJobsQuery(tables, {
      ...page,
      state: undefined,
      finished: { after: time, before: time },
      searchLimit: 100_000,
    }),
    lockSessionQuery: lockSessionQuery(tables, id),
    missingGrantsQuery: missingGrantsQuery(tables),
    notifyWorkersQuery: notifyWorkersQuery(channel, text),
    parkJobsQuery: parkJobsQuery(tables, held, [
      { id, fence: 1, transition: { type: 'park', delayMs: null, attempt: 0, error: null } },
      { id: id + 1, fence: 2, transition: { type: 'park', delayMs: 1_000, attempt: 0, error: null } },
    ]),
    addUsageQuery: addUsageQuery(limited, { queue: text, kind: text }),
    findLeasesQuery: findLeasesQuery(limited, id, [
      { queue: text, kind: '', declared: 10 },
      { queue: text, kind: text, declared: null },
    ]),
    findLimitsQuery: findLimitsQuery(limited, text),
    findGroupLimitsQuery: findGroupLimitsQuery(limited, { queue: text, after: text, limit: 11 }),
    setLimitQuery: setLimitQuery(grouped(), { queue: text, kind: text, group: '', override }),
    'setLimitQuery, of a group': setLimitQuery(grouped(), { queue: text, kind: '', group: text, override }),
    'setLimitQuery, removing': setLimitQuery(grouped(), {
      queue: text,
      kind: text,
      group: '',
      override: null,
    }),
    'setLimitQuery, removing, of a group': setLimitQuery(grouped(), {
      queue: text,
      kind: '',
      group: text,
      override: null,
    }),
    'setLimitQuery, removing, of every group': setLimitQuery(grouped(), {
      queue: text,
      kind: '',
      group: '*',
      override: null,
    }),
    takeLeaseQuery: takeLeaseQuery(limited, {
      queue: text,
      kind: text,
      workerId: id,
      declared: 10,
      running: 2,
      want: 3,
      wants: 4,
      era: 0,
    }),
    takeStartsQuery: takeStartsQuery(limited, {
      queue: text,
      kind: text,
      workerId: id,
      declared: { limit: 10, perMs: 1_000 },
      want: 3,
      least: 1,
      withinMs: 25,
      unspent: { '1700000000000': 2 },
    }),
    pauseQueueQuery: pauseQueueQuery(tables, { queue: text, channel }),
    countWorkersQuery: countWorkersQuery(tables),
    findDiscardedQuery: findDiscardedQuery(tables, { kind: text, limit: 10 }),
    findExpiredQuery: findExpiredQuery(tables, 86_400_000),
    isCitusQuery,
    hasLargeIdsQuery: hasLargeIdsQuery(tables),
    pruneKeysQuery: pruneKeysQuery(keys, 1_000),
    findOverKeysQuery: findOverKeysQuery(keys),
    pruneKeysOfQuery: pruneKeysOfQuery(keys, text, 1_000),
    pruneQueueQuery: pruneQueueQuery(tables, text, { retentionMs: 86_400_000, limit: 1_000 }),
    pruneResultsQuery: pruneResultsQuery(tables, { retentionMs: 86_400_000, limit: 1_000 }),
    lockHeldJobsQuery: lockHeldJobsQuery(tables, held, [
      { id, fence: 3 },
      { id: id + 1, fence: 1 },
    ]),
    reclaimJobQuery: reclaimJobQuery(tables, { id, queue: text, attempt: 2, fence: 3 }),
    carryOverJobsQuery: carryOverJobsQuery(tables, text, [
      { id, attempt: 2, createdAtMs: time.getTime() },
      { id, attempt: 0, createdAtMs: undefined },
    ]),
    findImportedJobsQuery: findImportedJobsQuery(tables, { source: text, after: id, limit: 10 }),
    releaseImportedJobsQuery: releaseImportedJobsQuery(tables, { queue: text, ids: [id] }),
    'releaseImportedJobsQuery, of groups': releaseImportedJobsQuery(grouped(), { queue: text, ids: [id] }),
    redriveJobsQuery: redriveJobsQuery(tables, {}),
    'redriveJobsQuery, filtered': redriveJobsQuery(tables, {
      id,
      kind: text,
      queue: text,
      finishedAfter: time,
      finishedBefore: time,
      limit: 10,
    }),
    'redriveJobsQuery, a batch of some': redriveJobsQuery(tables, {
      queue: text,
      ids: [id],
      after: 0,
      limit: 10,
    }),
    'redriveJobsQuery, a batch of cancelled ones': redriveJobsQuery(tables, {
      state: 'cancelled',
      queue: text,
      after: id,
      limit: 10,
    }),
    'redriveJobsQuery, of groups': redriveJobsQuery(grouped(), {}),
    'redriveJobsQuery, of groups, filtered': redriveJobsQuery(grouped(), { queue: text }),
    'redriveJobsQuery, of undeclared groups': redriveJobsQuery(ofUndeclaredGroups, { id, queue: text }),
    'redriveJobsQuery, waking': redriveJobsQuery(tables, {}, wakeUp),
    runJobNowQuery: runJobNowQuery(tables, { id, queue: text }),
    'runJobNowQuery, several': runJobNowQuery(tables, { ids: [id, id + 1], queue: text }),
    findRunnableQuery: findRunnableQuery(tables, [id]),
    'runJobNowQuery, of groups': runJobNowQuery(grouped('end'), { id, queue: text }),
    registerWorkerQuery: registerWorkerQuery(tables, { name: text, queues: [text] }),
    releaseJobsQuery: releaseJobsQuery(tables, { queue: text, workerId: id }, [{ id, fence: 7 }]),
    removeGoneWorkersQuery: removeGoneWorkersQuery(
      tables,
      [{ id, seen: String(time.getTime() / 1_000) }],
      limits,
    ),
    removeWorkerQuery: removeWorkerQuery(tables, id),
    requestCancelQuery: requestCancelQuery(tables, { id, queue: text, reason: text }),
    rescheduleJobsQuery: rescheduleJobsQuery(tables, held, [
      { id, fence: 1, transition: retry },
      { id: id + 1, fence: 2, transition: giveBack },
    ]),
    'rescheduleJobsQuery, waiting briefly': rescheduleJobsQuery(
      tables,
      held,
      [{ id, fence: 1, transition: retry }],
      { locks: 'briefly' },
    ),
    'rescheduleJobsQuery, of free rows': rescheduleJobsQuery(
      tables,
      held,
      [{ id, fence: 1, transition: retry }],
      { locks: 'skip' },
    ),
    findEndedJobsQuery: findEndedJobsQuery(tables, {
      search: {
        kind: text,
        queue: text,
        group: text,
        state: 'discarded',
        payload: [[JSON.stringify({ text })]],
        own: [],
      },
      after: { endedUs: 0, id },
      limit: 10,
    }),
    browseJobsQuery: browseJobsQuery(tables, {
      search: { payload: [], own: [] },
      scope: everything,
      before: undefined,
      limit: 50,
      bound: 100,
      excerpt: 240,
    }),
    'browseJobsQuery, live, by everything': browseJobsQuery(tables, {
      search: {
        state: 'due',
        kind: text,
        queue: text,
        group: text,
        uniqueKey: text,
        workerId: id,
        id,
        createdAfter: time,
        createdBefore: time,
        payload: [[JSON.stringify({ text }), '{}']],
        own: [],
      },
      scope: { queues: [text, `${text}, too`], own: [] },
      before: id,
      limit: 50,
      bound: 100,
      excerpt: 240,
    }),
    'browseJobsQuery, of a key': browseJobsQuery(tables, {
      ...byRunAt,
      search: { uniqueKey: text, payload: [], own: [] },
      before: undefined,
      bound: 100,
      live: 'key',
      results: 'sought',
    }),
    'browseJobsQuery, of a key among the newest': browseJobsQuery(tables, {
      ...byRunAt,
      search: { uniqueKey: text, group: text, payload: [], own: [] },
      before: undefined,
      bound: 100,
    }),
    'browseJobsQuery, of a group': browseJobsQuery(tables, {
      ...byRunAt,
      search: { group: text, payload: [], own: [] },
      before: id,
      bound: 100,
      live: 'group',
      results: 'sought',
    }),
    'browseJobsQuery, of ended jobs of a group': browseJobsQuery(tables, {
      ...byRunAt,
      search: { state: 'completed', group: text, payload: [], own: [] },
      before: id,
      bound: 100,
      results: 'sought',
    }),
    'browseJobsQuery, retrying': browseJobsQuery(tables, {
      ...byRunAt,
      search: { state: 'retrying', payload: [], own: [] },
      before: undefined,
      bound: 100,
      live: 'failed',
    }),
    'findLastIdQuery, live': findLastIdQuery(tables, 'live'),
    'findLastIdQuery, of results': findLastIdQuery(tables, 'results'),
    countManyQuery: countManyQuery(tables, {
      action: 'redrive',
      search: { payload: [], own: [] },
      scope: everything,
      ids: [id],
    }),
    'findManyQuery, live': findManyQuery(tables, {
      action: 'run-now',
      search: { kind: text, payload: [], own: [] },
      scope: { queues: [text], own: [] },
      ids: undefined,
      after: 0,
      until: id,
      limit: 10,
    }),
    samplePayloadsQuery: samplePayloadsQuery(tables, {
      scope: everything,
      kind: text,
      payloads: 10,
      bound: 100,
      limit: 10,
    }),
    findSearchEndQuery: findSearchEndQuery(tables, {
      before: id,
      bound: 100,
      of: { live: true, ended: true },
    }),
    'findSearchEndQuery, of a full page': findSearchEndQuery(tables, {
      before: id,
      above: id,
      bound: 100,
      of: { live: true, ended: true },
    }),
    'findSearchEndQuery, of a group': findSearchEndQuery(tables, {
      before: id,
      bound: 100,
      of: { live: false, ended: true },
      sought: { group: text },
    }),
    findBandsQuery: findBandsQuery(tables, { queues: undefined, group: undefined, limit: 10 }),
    'findBandsQuery, of a group': findBandsQuery(tables, { queues: [text], group: text, limit: 10 }),
    browseByRunAtQuery: browseByRunAtQuery(tables, { ...byRunAt, ...inOrder }),
    findReadEndQuery: findReadEndQuery(tables, inOrder),
    'findReadEndQuery, of a full page': findReadEndQuery(tables, { ...inOrder, until: inOrder.after }),
    countOfGroupQuery: countOfGroupQuery(tables, { group: text, most: 10 }),
    showJobQuery: showJobQuery(tables, { id, scope: everything, cut: 100 }),
    'showJobQuery, of queues': showJobQuery(tables, { id, scope: { queues: [text], own: [] }, cut: 100 }),
    groupErrorsQuery: groupErrorsQuery(tables, { scope: everything, bound: 100, limit: 10 }),
    'groupErrorsQuery, of queues': groupErrorsQuery(tables, {
      scope: { queues: [text], own: [] },
      kind: text,
      queue: text,
      hours: 24,
      bound: 100,
      limit: 10,
    }),
    findCauseQuery: findCauseQuery(tables, { scope: everything, ids: [id], finishedBefore: time }),
    'findCauseQuery, of queues': findCauseQuery(tables, {
      scope: { queues: [text], own: [] },
      ids: [id],
      finishedBefore: time,
    }),
    countOfCauseQuery: countOfCauseQuery(tables, ofCause),
    findOfCauseQuery: findOfCauseQuery(tables, { ...ofCause, finishedAfter: time, after: id, limit: 10 }),
    'countJobsQuery, of queues': countJobsQuery(tables, { queues: [text], own: [] }),
    countFinishedQuery: countFinishedQuery(tables, { scope: everything, minutes: 60, bound: 100 }),
    lookAtWorkersQuery: lookAtWorkersQuery(tables, { queues: undefined, limit: 10 }),
    'lookAtWorkersQuery, of queues': lookAtWorkersQuery(tables, { queues: [text], limit: 10 }),
    resumeQueueQuery: resumeQueueQuery(tables, text),
    databaseTimeQuery,
    transactionIdQuery,
    unlockSessionQuery: unlockSessionQuery(tables, id),
    unparkJobsQuery: unparkJobsQuery(tables, { queue: text, ids: [id], onlyWaiting: true }),
    'unparkJobsQuery, in any case': unparkJobsQuery(tables, { queue: text, ids: [id], onlyWaiting: false }),
    'unparkJobsQuery, of groups': unparkJobsQuery(grouped(), { queue: text, ids: [id], onlyWaiting: true }),
    writeProgressQuery: writeProgressQuery(tables, held, [
      { id, fence: 1, progress: JSON.stringify({ text }) },
    ]),
  };
}
