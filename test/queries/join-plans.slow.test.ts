import { type SQL, sql } from 'drizzle-orm';
import { beforeAll, describe, expect, test } from 'vitest';
import type { NewJob } from '../../src/core/job/new-job.ts';
import type { Transition } from '../../src/core/job/transition.ts';
import { beginJobsQuery } from '../../src/core/queries/begin/begin-jobs.ts';
import { browseJobsQuery } from '../../src/core/queries/browse/browse-jobs.ts';
import { countDiscardedQuery } from '../../src/core/queries/browse/count-discarded.ts';
import { countFinishedQuery } from '../../src/core/queries/browse/count-finished.ts';
import { findBandsQuery } from '../../src/core/queries/browse/find-bands.ts';
import { findCauseQuery } from '../../src/core/queries/browse/find-cause.ts';
import { findEndedJobsQuery } from '../../src/core/queries/browse/find-ended-jobs.ts';
import { countManyQuery, findManyQuery } from '../../src/core/queries/browse/find-many.ts';
import { countOfCauseQuery, findOfCauseQuery } from '../../src/core/queries/browse/find-of-cause.ts';
import { groupErrorsQuery } from '../../src/core/queries/browse/group-errors.ts';
import { groupRetryingQuery } from '../../src/core/queries/browse/group-retrying.ts';
import { lookAtWorkersQuery } from '../../src/core/queries/browse/look-at-workers.ts';
import { samplePayloadsQuery } from '../../src/core/queries/browse/sample-payloads.ts';
import { claimJobsQuery } from '../../src/core/queries/claim/claim-jobs.ts';
import { findDueQuery } from '../../src/core/queries/claim/find-due.ts';
import { findDueIdsQuery } from '../../src/core/queries/claim/find-due-ids.ts';
import { findOverlookedQuery } from '../../src/core/queries/claim/find-overlooked.ts';
import { findRefusedJobsQuery } from '../../src/core/queries/claim/find-refused-jobs.ts';
import { tryClaimQuery } from '../../src/core/queries/claim/try-claim.ts';
import { findStandingJobsQuery } from '../../src/core/queries/enqueue/find-standing-jobs.ts';
import { insertJobsQuery, insertKeyedJobsQuery } from '../../src/core/queries/enqueue/insert-jobs.ts';
import { insertSelectedJobsQuery } from '../../src/core/queries/enqueue/insert-selected-jobs.ts';
import { findHeldJobsQuery } from '../../src/core/queries/hold/find-held-jobs.ts';
import { findUnknownJobsQuery } from '../../src/core/queries/hold/find-unknown-jobs.ts';
import { lockHeldJobsQuery } from '../../src/core/queries/hold/lock-held-jobs.ts';
import { releaseJobsQuery } from '../../src/core/queries/hold/release-jobs.ts';
import { cancelJobsQuery } from '../../src/core/queries/operate/cancel-jobs.ts';
import { countJobsQuery } from '../../src/core/queries/operate/count-jobs.ts';
import { countResultsQuery } from '../../src/core/queries/operate/count-results.ts';
import { countRetryingQuery } from '../../src/core/queries/operate/count-retrying.ts';
import { countSomeJobsQuery } from '../../src/core/queries/operate/count-some-jobs.ts';
import { findCancellableQuery } from '../../src/core/queries/operate/find-cancellable.ts';
import { findCrewsQuery } from '../../src/core/queries/operate/find-crews.ts';
import { findHeadsQuery } from '../../src/core/queries/operate/find-heads.ts';
import { findJobsQuery } from '../../src/core/queries/operate/find-jobs.ts';
import { findLiveIdsQuery } from '../../src/core/queries/operate/find-live-ids.ts';
import { findPassedOverQuery } from '../../src/core/queries/operate/find-passed-over.ts';
import { findRunnableQuery } from '../../src/core/queries/operate/find-runnable.ts';
import { findSilentWorkersQuery } from '../../src/core/queries/operate/find-silent-workers.ts';
import { inspectVitalsQuery } from '../../src/core/queries/operate/inspect-vitals.ts';
import { listJobsQuery } from '../../src/core/queries/operate/list-jobs.ts';
import { pauseQueueQuery } from '../../src/core/queries/operate/pause-queue.ts';
import { findExpiredQuery, pruneQueueQuery } from '../../src/core/queries/operate/prune-queue.ts';
import { pruneResultsQuery } from '../../src/core/queries/operate/prune-results.ts';
import { findDiscardedQuery } from '../../src/core/queries/operate/redrive-by-queue.ts';
import { redriveJobsQuery } from '../../src/core/queries/operate/redrive-jobs.ts';
import { requestCancelsQuery } from '../../src/core/queries/operate/request-cancels.ts';
import { resumeQueueQuery } from '../../src/core/queries/operate/resume-queue.ts';
import { runJobNowQuery } from '../../src/core/queries/operate/run-job-now.ts';
import { checkWorkersQuery } from '../../src/core/queries/presence/check-workers.ts';
import { findRequestsQuery } from '../../src/core/queries/presence/find-requests.ts';
import { knownWorkers } from '../../src/core/queries/presence/find-workers.ts';
import {
  removeGoneWorkersQuery,
  testWorkersQuery,
} from '../../src/core/queries/presence/remove-gone-workers.ts';
import { findFatesQuery } from '../../src/core/queries/settle/find-fates.ts';
import { finishJobsQuery } from '../../src/core/queries/settle/finish-jobs.ts';
import { parkJobsQuery } from '../../src/core/queries/settle/park-jobs.ts';
import { rescheduleJobsQuery } from '../../src/core/queries/settle/reschedule-jobs.ts';
import { writeProgressQuery } from '../../src/core/queries/settle/write-progress.ts';
import { inContext } from '../../src/core/sql/statement-context.ts';
import { carryOverJobsQuery } from '../../src/entries/import/queries/carry-over-jobs.ts';
import { findImportedJobsQuery } from '../../src/entries/import/queries/find-imported-jobs.ts';
import { releaseImportedJobsQuery } from '../../src/entries/import/queries/release-imported-jobs.ts';
import { addWaitsQuery } from '../../src/features/batches/queries/add-waits.ts';
import { cancelBatchesQuery } from '../../src/features/batches/queries/cancel-batches.ts';
import { cancelFlowQuery } from '../../src/features/batches/queries/cancel-flow.ts';
import { countBatchQuery } from '../../src/features/batches/queries/count-batch.ts';
import { countOpenFlowsQuery } from '../../src/features/batches/queries/count-open-flows.ts';
import { deleteLeftBatchesQuery } from '../../src/features/batches/queries/delete-left-batches.ts';
import { endMembersQuery } from '../../src/features/batches/queries/end-members.ts';
import { endUnclaimedQuery } from '../../src/features/batches/queries/end-unclaimed.ts';
import { findEndsQuery } from '../../src/features/batches/queries/find-ends.ts';
import { findFlowQuery } from '../../src/features/batches/queries/find-flow.ts';
import { findFlowBatchesQuery } from '../../src/features/batches/queries/find-flow-batches.ts';
import { findFlowGroupsQuery } from '../../src/features/batches/queries/find-flow-groups.ts';
import { findFlowOfJobQuery } from '../../src/features/batches/queries/find-flow-of-job.ts';
import { findFlowsQuery } from '../../src/features/batches/queries/find-flows.ts';
import { findGroupJobsQuery } from '../../src/features/batches/queries/find-group-jobs.ts';
import { findLeftBatchesQuery } from '../../src/features/batches/queries/find-left-batches.ts';
import { findLiveMembersQuery } from '../../src/features/batches/queries/find-live-members.ts';
import { findMembersQuery } from '../../src/features/batches/queries/find-members.ts';
import { findOpenBatchesQuery } from '../../src/features/batches/queries/find-open-batches.ts';
import { findTalliedQuery } from '../../src/features/batches/queries/find-tallied.ts';
import { findToldMembersQuery } from '../../src/features/batches/queries/find-told-members.ts';
import { findUnclaimedQuery } from '../../src/features/batches/queries/find-unclaimed.ts';
import { findUnwokenQuery } from '../../src/features/batches/queries/find-unwoken.ts';
import { findWaitedQuery } from '../../src/features/batches/queries/find-waited.ts';
import { foldTalliesQuery } from '../../src/features/batches/queries/fold-tallies.ts';
import { growBatchQuery } from '../../src/features/batches/queries/grow-batch.ts';
import { isBlockedQuery } from '../../src/features/batches/queries/is-blocked.ts';
import { lockFlowQuery } from '../../src/features/batches/queries/lock-flow.ts';
import { openBatchesQuery } from '../../src/features/batches/queries/open-batches.ts';
import { parkWaitersQuery } from '../../src/features/batches/queries/park-waiters.ts';
import { reopenBatchesQuery } from '../../src/features/batches/queries/reopen-batches.ts';
import { reopenReturnedQuery } from '../../src/features/batches/queries/reopen-returned.ts';
import { spareMembersQuery } from '../../src/features/batches/queries/spare-members.ts';
import { tallyMissingQuery } from '../../src/features/batches/queries/tally-missing.ts';
import { waitForBatchesQuery } from '../../src/features/batches/queries/wait-for-batches.ts';
import { wakeWaitersQuery } from '../../src/features/batches/queries/wake-waiters.ts';
import { TalliedEnds } from '../../src/features/batches/sql/tallied-ends.ts';
import * as control from '../../src/features/control/index.ts';
import {
  findOverKeysQuery,
  pruneKeysOfQuery,
  pruneKeysQuery,
} from '../../src/features/keys/queries/prune-keys.ts';
import { adoptJobsQuery } from '../../src/features/limits/queries/adopt-jobs.ts';
import { endHandlerHoldsQuery } from '../../src/features/limits/queries/end-handler-holds.ts';
import { findDueGroupsQuery } from '../../src/features/limits/queries/find-due-groups.ts';
import { findGroupedDueIdsQuery } from '../../src/features/limits/queries/find-grouped-due-ids.ts';
import { findGroupsQuery } from '../../src/features/limits/queries/find-groups.ts';
import { findLeasesQuery } from '../../src/features/limits/queries/find-leases.ts';
import { findGroupLimitsQuery, findLimitsQuery } from '../../src/features/limits/queries/find-limits.ts';
import { findPlainJobsQuery } from '../../src/features/limits/queries/find-plain-jobs.ts';
import { findStoppedGroupsQuery } from '../../src/features/limits/queries/find-stopped-groups.ts';
import { setLimitQuery } from '../../src/features/limits/queries/set-limit.ts';
import { takeLeaseQuery } from '../../src/features/limits/queries/take-lease.ts';
import { foldMetricsQuery } from '../../src/features/metrics/queries/fold-metrics.ts';
import { pruneMetricsQuery } from '../../src/features/metrics/queries/prune-metrics.ts';
import { reportMetricsQuery } from '../../src/features/metrics/queries/report-metrics.ts';
import { sumMetricsQuery } from '../../src/features/metrics/queries/sum-metrics.ts';
import { queueMetrics } from '../../src/features/metrics/schema/index.ts';
import { declareSchedulesQuery } from '../../src/features/schedules/queries/declare-schedules.ts';
import { findDueSchedulesQuery } from '../../src/features/schedules/queries/find-due-schedules.ts';
import { findSchedulesQuery } from '../../src/features/schedules/queries/find-schedules.ts';
import { fireSchedulesQuery } from '../../src/features/schedules/queries/fire-schedules.ts';
import {
  forgetSchedulesQuery,
  renewSchedulesQuery,
  tidySchedulesQuery,
} from '../../src/features/schedules/queries/tidy-schedules.ts';
import { copyStepsQuery } from '../../src/features/workflows/queries/copy-steps.ts';
import { deleteLeftRowsQuery } from '../../src/features/workflows/queries/delete-left-rows.ts';
import { enqueueChildrenQuery } from '../../src/features/workflows/queries/enqueue-children.ts';
import { findLeftRowsQuery } from '../../src/features/workflows/queries/find-left-rows.ts';
import { findMailboxesQuery } from '../../src/features/workflows/queries/find-mailboxes.ts';
import { findStepNamesQuery } from '../../src/features/workflows/queries/find-step-names.ts';
import { findStepsQuery } from '../../src/features/workflows/queries/find-steps.ts';
import { forgetStepsQuery } from '../../src/features/workflows/queries/forget-steps.ts';
import { receiveSignalQuery } from '../../src/features/workflows/queries/receive-signal.ts';
import { recordStepsQuery } from '../../src/features/workflows/queries/record-steps.ts';
import { sendSignalQuery } from '../../src/features/workflows/queries/send-signal.ts';
import { showStepsQuery } from '../../src/features/workflows/queries/show-steps.ts';
import { unparkJobsQuery } from '../../src/features/workflows/queries/unpark-jobs.ts';
import * as workflowTables from '../../src/features/workflows/schema/index.ts';
import { hasBegun } from '../../src/features/workflows/sql/begun-job.ts';
import { addControlTables, addMetricsTable, addWorkflowTables } from '../support/control-tables.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { groupClaimOf, groupedTables } from './support/groups.ts';
import { ALL_BANDS, tables } from './support/jobs.ts';
import { isPlannedAnew, looksOf } from './support/looks.ts';

const database = useTestDatabase({ max: 1 });
const N = 3_000;
/** Where all were compared with all, it would be hundreds. */
const MOST_ROWS = 12 * N;
/** An index that is read from end to end for each row is many pages and few rows. */
const MOST_PAGES = 60 * N;

const { queueBatches, queueWaits, queueTallies } = workflowTables;
const batchTables = { queueBatches, queueWaits, queueTallies };
const { queueSchedules, queueLimits, queueUsage, queueGroups, queueHolds, queueNotes, queueKeys } = control;
const members = { members: new TalliedEnds(batchTables) };
const all = { ...tables, ...workflowTables };
const withMembers = inContext(all, members);
const limitTables = { queueLimits, queueUsage, queueGroups, queueHolds, queueNotes };
const grouped = (serial?: 'end' | 'success') =>
  inContext({ ...groupedTables(serial), ...workflowTables }, members);
const scheduleTables = { ...tables, queueSchedules };
const keyTables = { tables, keys: queueKeys };
const metrics = { tables, metrics: queueMetrics };

const TABLES = `queue_jobs, queue_results, queue_workers, queue_pauses, queue_limits, queue_usage, queue_groups,
  queue_holds, queue_notes, queue_keys, queue_schedules, queue_metrics, queue_batches, queue_waits, queue_tallies,
  queue_steps, queue_mailboxes`;
const NAMES = TABLES.split(',').map((name) => name.trim());

beforeAll(async () => {
  await addControlTables(database);
  await addMetricsTable(database);
  await addWorkflowTables(database);
  for (const name of NAMES) {
    await database.client.unsafe(`alter table ${name} set (autovacuum_enabled = off)`);
  }
});

const numbers = (count = N, from = 1) => Array.from({ length: count }, (_, at) => at + from);
const ids = numbers();
const holder = { queue: 'q', workerId: 7 };
const heldJobs = ids.map((id) => ({ id, fence: 1 }));
const error = { attempt: 1, name: 'Error', message: 'no' };
const finish = { type: 'finish', state: 'completed', output: '1', error: null, keepResult: true } as const;
const of = <T>(transition: T) => heldJobs.map((job) => ({ ...job, transition }));
const mixed = <T extends readonly [Transition, ...Transition[]]>(...transitions: T) =>
  heldJobs.map((job, at) => ({
    ...job,
    transition: (transitions[at % transitions.length] ?? transitions[0]) as T[number],
  }));
const discard = { ...finish, state: 'discarded', output: null, error } as const;
const cancelled = { ...finish, state: 'cancelled', output: null, error } as const;
const outcome = { ...finish, keepResult: 'outcome' } as const;
const none = { ...finish, keepResult: false } as const;
const retry = { type: 'reschedule', delayMs: 60_000, attempt: 1, error } as const;
const giveBack = { type: 'reschedule', delayMs: null, attempt: 0, error: null, unbegun: true } as const;
const park = { type: 'park', delayMs: null, attempt: 0, error: null } as const;
const scope = { queues: undefined, own: [] };
const search = { payload: [], own: [] };
const soon = new Date(Date.now() + 3_600_000);
const job: NewJob = {
  queue: 'q',
  kind: 'k',
  payload: '{"n":1}',
  priority: 5,
  maxAttempts: 20,
  delayMs: 0,
  runAtMs: null,
  uniqueKey: null,
  metadata: '{}',
};
const jobs = (more: (n: number) => Partial<NewJob>) => ids.map((n): NewJob => ({ ...job, ...more(n) }));
const channel = 'x';
const wakeUp = { channel, queues: ['q'], othersNotify: true };
const limits = { silentMs: 30_000, frozenMs: 60_000, startRespiteMs: 10_000 };
const slice = { queue: 'q', filter: {}, ids } as const;
const claim = { queue: 'q', kinds: ['k'], bands: ALL_BANDS, limit: N, workerId: 7, fromGoneWorkers: false };
const page = { kind: undefined, queue: undefined, state: undefined, before: undefined, limit: 51 };
const browse = { search, scope, before: undefined, limit: 50, bound: N, excerpt: 240 };
const cause = { scope, queue: 'q', kind: 'k', name: 'Error', cause: 'no', bound: N, finishedBefore: soon };
const selected = {
  mayBeDue: true,
  source: sql`(select n from generate_series(1, ${N}::int4) as n) as selected`,
  queue: 'q',
  kind: 'k',
  maxAttempts: 20,
  payload: sql`jsonb_build_object('n', n)`,
  priority: sql`${5}`,
  runAt: sql`'2024-01-01'::timestamptz`,
  uniqueKey: sql`'new ' || n`,
  metadata: sql`'{}'::jsonb`,
};

interface Situation {
  /** Inserts `n` rows, with ids from `first` on. */
  readonly fill: (n: number, first: number, queue: string) => string;
  readonly statements: () => Readonly<Record<string, SQL>>;
}

const ERRORS = `'[{"attempt":1,"name":"Error","message":"no","at":"2024-01-01"}]'::jsonb`;

const JOBS = (n: number, first: number, queue: string, more: Record<string, string> = {}) => {
  const columns = Object.keys(more)
    .map((name) => `, ${name}`)
    .join('');
  const values = Object.values(more)
    .map((value) => `, ${value}`)
    .join('');
  return `insert into queue_jobs (id, queue, kind, payload, max_attempts, run_at${columns}) overriding system value
    select n, '${queue}', 'k', '1', 20, now() - interval '1 minute'${values}
    from generate_series(${first}, ${first + n - 1}) as n;`;
};
const RESULTS = (
  n: number,
  first: number,
  queue: string,
  state: string,
  more: Record<string, string> = {},
) => {
  const columns = Object.keys(more)
    .map((name) => `, ${name}`)
    .join('');
  const values = Object.values(more)
    .map((value) => `, ${value}`)
    .join('');
  return `insert into queue_results (job_id, queue, kind, payload, state, errors, attempt, max_attempts, priority,
      fence, metadata, created_at, run_at, finished_at${columns})
    select n, '${queue}', 'k', '1', '${state}', ${ERRORS}, 1, 3, 5, 1, '{}', now(), now(), now() - interval '2 hours'${values}
    from generate_series(${first}, ${first + n - 1}) as n;`;
};
const HELD = { worker_id: '7', claimed_at: 'now()', fence: '1', attempt: '1' };
const WORKERS = (n: number, first: number) => `
  insert into queue_workers (id, name, queues) overriding system value
  select n, 'w', '["q"]' from generate_series(${first}, ${first + n - 1}) as n on conflict do nothing;`;
const series = (n: number, first: number) => `generate_series(${first}, ${first + n - 1}) as n`;

const step = { id: 1, fence: 1, name: 's', tookMs: 1 };

const situations: Readonly<Record<string, Situation>> = {
  held: {
    fill: (n, first, queue) =>
      JOBS(n, first, queue, { ...HELD, unique_key: `'key ' || n`, batch_id: 'n' }) +
      WORKERS(1, first === 1 ? 7 : 900_000) +
      `insert into queue_waits (batch_id, job_id, queue, policy) select 1000000 + n, n, '${queue}', 'parent' from ${series(n, first)};`,
    statements: () => ({
      finishJobsQuery: finishJobsQuery(tables, holder, of(finish)),
      'finishJobsQuery, mixed': finishJobsQuery(
        tables,
        holder,
        mixed(finish, discard, cancelled, outcome, none),
      ),
      'finishJobsQuery, outcomes': finishJobsQuery(tables, holder, of(outcome)),
      'finishJobsQuery, none': finishJobsQuery(tables, holder, of(none)),
      'finishJobsQuery, free': finishJobsQuery(tables, holder, of(finish), { locks: 'skip' }),
      'finishJobsQuery, briefly': finishJobsQuery(tables, holder, of(finish), { locks: 'briefly' }),
      'finishJobsQuery, members': finishJobsQuery(withMembers, holder, mixed(finish, discard, cancelled)),
      'finishJobsQuery, members none': finishJobsQuery(withMembers, holder, of(none)),
      'finishJobsQuery, members cancelled': finishJobsQuery(withMembers, holder, of(cancelled)),
      'finishJobsQuery, members groups': finishJobsQuery(
        grouped('success'),
        holder,
        mixed(finish, discard, cancelled),
      ),
      rescheduleJobsQuery: rescheduleJobsQuery(tables, holder, mixed(retry, giveBack)),
      'rescheduleJobsQuery, free': rescheduleJobsQuery(tables, holder, of(retry), { locks: 'skip' }),
      'rescheduleJobsQuery, members': rescheduleJobsQuery(withMembers, holder, mixed(retry, giveBack)),
      parkJobsQuery: parkJobsQuery(tables, holder, of(park)),
      'parkJobsQuery, wait': parkJobsQuery(tables, holder, of(park), { locks: 'wait' }),
      'parkJobsQuery, groups': parkJobsQuery(grouped('end'), holder, of(park)),
      unparkJobsQuery: unparkJobsQuery(tables, { queue: 'q', ids, onlyWaiting: false }),
      'unparkJobsQuery, groups': unparkJobsQuery(grouped(), { queue: 'q', ids, onlyWaiting: true }),
      beginJobsQuery: beginJobsQuery(tables, holder, heldJobs),
      'beginJobsQuery, grown': beginJobsQuery(tables, holder, heldJobs, {
        locks: 'briefly',
        onDisk: 'soon',
        ifTableIs: 'grown',
      }),
      'beginJobsQuery, free': beginJobsQuery(tables, holder, heldJobs, { locks: 'skip' }),
      writeProgressQuery: writeProgressQuery(
        tables,
        holder,
        heldJobs.map((job) => ({ ...job, progress: '1' })),
      ),
      findHeldJobsQuery: findHeldJobsQuery(tables, holder, heldJobs),
      findUnknownJobsQuery: findUnknownJobsQuery(tables, { ...holder, except: heldJobs, ids: { after: 0 } }),
      'findUnknownJobsQuery, none': findUnknownJobsQuery(tables, {
        ...holder,
        except: [],
        ids: { after: 0 },
      }),
      lockHeldJobsQuery: lockHeldJobsQuery(tables, holder, heldJobs),
      releaseJobsQuery: releaseJobsQuery(tables, holder, heldJobs),
      'releaseJobsQuery, after': releaseJobsQuery(tables, { ...holder, mayHaveBegun: true }, heldJobs),
      findFatesQuery: findFatesQuery(tables, 'q', heldJobs),
      findRequestsQuery: findRequestsQuery(tables, {
        workerId: 7,
        queues: ['q'],
        jobs: heldJobs.map((job) => ({ ...job, queue: 'q' })),
      }),
      'findRequestsQuery, queues': findRequestsQuery(tables, {
        workerId: 7,
        queues: ids.map((n) => `q${n}`),
        jobs: heldJobs.map((job) => ({ ...job, queue: `q${job.id % 3}` })),
      }),
      requestCancelsQuery: requestCancelsQuery(tables, { ...slice, reason: 'no' }),
      'cancelJobsQuery, forced': cancelJobsQuery(tables, { ...slice, reason: error, force: { channel } }),
      'cancelJobsQuery, forced members groups': cancelJobsQuery(grouped('end'), {
        ...slice,
        reason: error,
        force: { channel },
      }),
      'claimJobsQuery, of gone workers': claimJobsQuery(tables, {
        ...claim,
        workerId: 8,
        ids,
        fromGoneWorkers: true,
      }),
      findOverlookedQuery: findOverlookedQuery(tables, {
        looks: [
          {
            queue: 'q',
            passed: ALL_BANDS.map(() => ({ floorMs: Date.now(), endMs: Date.now() })),
            after: undefined,
          },
        ],
        kinds: ['k'],
        workerId: 8,
        slice: N,
      }),
      recordStepsQuery: recordStepsQuery(
        all,
        holder,
        heldJobs.map((job) => ({ ...job, name: 's', kind: 'run', tookMs: 1, output: '1', ended: true })),
        'briefly',
      ),
      'recordStepsQuery, free': recordStepsQuery(
        all,
        holder,
        heldJobs.map((job) => ({ ...job, name: 's', kind: 'run', tookMs: 1, output: '1', ended: true })),
        'skip',
      ),
      'recordStepsQuery, of one job': recordStepsQuery(
        all,
        holder,
        ids.map((n) => ({
          id: 1,
          fence: 1,
          name: `s${n}`,
          kind: 'run',
          tookMs: 1,
          output: '1',
          ended: true,
        })),
        'briefly',
      ),
      enqueueChildrenQuery: enqueueChildrenQuery(
        withMembers,
        holder,
        { step, jobs: jobs((n) => ({ priority: n % 3 })), policy: 'parent', wakeUp },
        'briefly',
      ),
      lookAtWorkersQuery: lookAtWorkersQuery(tables, { queues: undefined, limit: 100 }),
      countJobsQuery: countJobsQuery(tables),
      inspectVitalsQuery: inspectVitalsQuery(tables),
    }),
  },
  'held by many who are gone': {
    fill: (n, first, queue) =>
      JOBS(n, first, queue, { ...HELD, worker_id: 'n' }) +
      `
      insert into queue_workers (id, name, queues, kinds, seen_at, session, node) overriding system value
      select n, 'w' || n, '["q"]', '["k"]', now() - interval '1 hour', n, 'node' from ${series(n, first + 1_000_000)};`,
    statements: () => ({
      'claimJobsQuery, of gone workers': claimJobsQuery(tables, {
        ...claim,
        workerId: 8,
        ids,
        fromGoneWorkers: true,
      }),
      findOverlookedQuery: findOverlookedQuery(tables, {
        looks: [
          {
            queue: 'q',
            passed: ALL_BANDS.map(() => ({ floorMs: Date.now(), endMs: Date.now() })),
            after: undefined,
          },
        ],
        kinds: ['k'],
        workerId: 8,
        slice: N,
      }),
      checkWorkersQuery: checkWorkersQuery(tables, {
        worker: { id: 1_000_007, name: 'w', queues: ['q'], kinds: ['k'], session: 1, node: 'n' },
        beat: true,
        limits,
      }),
      'checkWorkersQuery, known': checkWorkersQuery(
        tables,
        {
          worker: { id: 1_000_007, name: 'w', queues: ['q'], kinds: ['k'], session: 1, node: 'n' },
          beat: false,
          limits,
        },
        knownWorkers(
          ids.map((id) => ({
            id: id + 1_000_000,
            session: id,
            node: 'node',
            started: '1700000000',
            seen: '1700000000',
          })),
        ),
      ),
      removeGoneWorkersQuery: removeGoneWorkersQuery(
        tables,
        ids.map((id) => ({ id: id + 1_000_000, seen: '1700000000' })),
        limits,
      ),
      testWorkersQuery: testWorkersQuery(
        tables,
        ids.map((id) => ({
          id: id + 1_000_000,
          session: id,
          node: 'node',
          started: '1700000000',
          seen: '1700000000',
        })),
        limits,
      ),
      findSilentWorkersQuery: findSilentWorkersQuery(tables, 1_000),
      findCrewsQuery: findCrewsQuery(tables),
      lookAtWorkersQuery: lookAtWorkersQuery(tables, { queues: undefined, limit: N }),
      'lookAtWorkersQuery, queues': lookAtWorkersQuery(tables, { queues: ['q'], limit: N }),
      inspectVitalsQuery: inspectVitalsQuery(tables),
      countJobsQuery: countJobsQuery(tables),
      'cancelJobsQuery, forced': cancelJobsQuery(tables, { ...slice, reason: error, force: { channel } }),
      findHeadsQuery: findHeadsQuery(tables, 1_000),
      pauseQueueQuery: pauseQueueQuery(tables, { queue: 'q', channel }),
    }),
  },
  due: {
    fill: (n, first, queue) =>
      `${JOBS(n, first, queue, {
        unique_key: `'key ' || n`,
        waiting_key: `'key ' || n`,
        errors: ERRORS,
        attempt: '0',
        metadata: `jsonb_build_object('drizzle-queue:import', jsonb_build_object('source', 's', 'id', n::text, 'runAtMs', 1, 'uniqueKey', 'imported ' || n))`,
      })}insert into queue_pauses (queue) select 'p' || n from ${series(n, first)};`,
    statements: () => ({
      insertJobsQuery: insertJobsQuery(
        tables,
        jobs(() => ({})),
        wakeUp,
      ),
      'insertJobsQuery, varying': insertJobsQuery(
        tables,
        jobs((n) => ({ priority: n % 3, kind: `k${n}` })),
        wakeUp,
      ),
      'insertJobsQuery, queues': insertJobsQuery(
        tables,
        jobs((n) => ({ queue: `q${n}` })),
        { ...wakeUp, queues: ids.map((n) => `q${n}`) },
      ),
      'insertJobsQuery, groups': insertJobsQuery(
        grouped(),
        jobs((n) => ({ group: `g${n}` })),
        wakeUp,
      ),
      'insertJobsQuery, members': insertJobsQuery(
        withMembers,
        jobs((n) => ({ batch: n, blockers: 1 })),
        wakeUp,
      ),
      insertKeyedJobsQuery: insertKeyedJobsQuery(
        tables,
        jobs((n) => ({ uniqueKey: `new ${n}` })),
        wakeUp,
      ),
      'insertKeyedJobsQuery, taken': insertKeyedJobsQuery(
        tables,
        jobs((n) => ({ uniqueKey: `key ${n * 2}` })),
        wakeUp,
      ),
      'insertKeyedJobsQuery, groups': insertKeyedJobsQuery(
        grouped(),
        jobs((n) => ({ uniqueKey: `new ${n}`, group: `g${n}` })),
        wakeUp,
      ),
      insertSelectedJobsQuery: insertSelectedJobsQuery(tables, selected, wakeUp),
      'insertSelectedJobsQuery, groups': insertSelectedJobsQuery(
        grouped(),
        { ...selected, group: sql`'g' || n`, cost: sql`3` },
        wakeUp,
      ),
      findStandingJobsQuery: findStandingJobsQuery(
        tables,
        jobs((n) => ({ uniqueKey: `key ${n}` })),
      ),
      'findStandingJobsQuery, rule': findStandingJobsQuery(
        tables,
        jobs((n) => ({ rule: { type: 'waiting', key: `key ${n}` } as never })),
      ),
      claimJobsQuery: claimJobsQuery(tables, claim),
      'claimJobsQuery, ids': claimJobsQuery(tables, { ...claim, ids }),
      'claimJobsQuery, beginning': claimJobsQuery(tables, { ...claim, beginning: 1 }),
      'claimJobsQuery, proven': claimJobsQuery(tables, {
        ...claim,
        beginning: { atMost: 3, provenKinds: ['k'] },
      }),
      'claimJobsQuery, without': claimJobsQuery(tables, { ...claim, without: numbers(N / 2) }),
      'claimJobsQuery, members': claimJobsQuery(withMembers, claim),
      tryClaimQuery: tryClaimQuery(tables, { queue: 'q', ids, workerId: 7 }),
      findRefusedJobsQuery: findRefusedJobsQuery(tables, { queue: 'q', ids }),
      findDueIdsQuery: findDueIdsQuery(tables, { ...claim, without: numbers(N / 2) }),
      findDueQuery: findDueQuery(tables, {
        looks: ids.map((n) => ({ queue: `q${n}`, floorMs: 0 })),
        kinds: ['k'],
        horizonMs: 1_600,
      }),
      cancelJobsQuery: cancelJobsQuery(tables, { ...slice, reason: error }),
      'cancelJobsQuery, groups': cancelJobsQuery(grouped('end'), { ...slice, reason: error }),
      findCancellableQuery: findCancellableQuery(tables, {
        filter: { ids },
        force: false,
        after: 0,
        until: 10 * N,
        limit: N,
      }),
      runJobNowQuery: runJobNowQuery(tables, { queue: 'q', ids }),
      'runJobNowQuery, groups': runJobNowQuery(grouped('end'), { queue: 'q', ids }),
      findRunnableQuery: findRunnableQuery(tables, ids),
      findJobsQuery: findJobsQuery(tables, ids),
      findLiveIdsQuery: findLiveIdsQuery(tables, ids),
      countManyQuery: countManyQuery(tables, { action: 'cancel', search, scope, ids }),
      findManyQuery: findManyQuery(tables, {
        action: 'run-now',
        search,
        scope,
        ids,
        after: 0,
        until: 10 * N,
        limit: N,
      }),
      unparkJobsQuery: unparkJobsQuery(tables, { queue: 'q', ids, onlyWaiting: true }),
      carryOverJobsQuery: carryOverJobsQuery(
        tables,
        'q',
        ids.map((id) => ({ id, attempt: 2, createdAtMs: 1 })),
      ),
      findImportedJobsQuery: findImportedJobsQuery(tables, { source: 's', after: 0, limit: N }),
      releaseImportedJobsQuery: releaseImportedJobsQuery(tables, { queue: 'q', ids }),
      'releaseImportedJobsQuery, groups': releaseImportedJobsQuery(grouped(), { queue: 'q', ids }),
      adoptJobsQuery: adoptJobsQuery(grouped(), 'q'),
      'adoptJobsQuery, by id': adoptJobsQuery(grouped(), 'q', ids),
      findPlainJobsQuery: findPlainJobsQuery(grouped(), 'q'),
      listJobsQuery: listJobsQuery(tables, { ...page, limit: N }),
      'listJobsQuery, searched': listJobsQuery(tables, { ...page, payload: '2', searchLimit: N }),
      browseJobsQuery: browseJobsQuery(tables, browse),
      'browseJobsQuery, key': browseJobsQuery(tables, {
        ...browse,
        search: { ...search, uniqueKey: 'key 3' },
        live: 'key',
        results: 'sought',
      }),
      'browseJobsQuery, retrying': browseJobsQuery(tables, {
        ...browse,
        search: { ...search, state: 'retrying' },
        live: 'failed',
      }),
      samplePayloadsQuery: samplePayloadsQuery(tables, {
        scope,
        kind: 'k',
        payloads: 100,
        bound: N,
        limit: 100,
      }),
      countRetryingQuery: countRetryingQuery(tables),
      groupRetryingQuery: groupRetryingQuery(tables, { scope, bound: N, limit: 10 }),
      countSomeJobsQuery: countSomeJobsQuery(
        tables,
        ids.map((n) => `q${n}`),
      ),
      countJobsQuery: countJobsQuery(tables, { queues: ids.map((n) => `q${n}`), own: [] }),
      findBandsQuery: findBandsQuery(tables, {
        queues: ids.map((n) => `q${n}`),
        group: undefined,
        limit: 10,
      }),
      findPassedOverQuery: findPassedOverQuery(tables, 1_000),
      findHeadsQuery: findHeadsQuery(tables, 1_000),
      pauseQueueQuery: pauseQueueQuery(tables, { queue: 'q', channel }),
      resumeQueueQuery: resumeQueueQuery(tables, 'p1'),
      inspectVitalsQuery: inspectVitalsQuery(tables),
    }),
  },
  'due in many queues': {
    fill: (n, first, queue) => JOBS(n, first, queue).replace(`'${queue}', 'k'`, `'${queue}' || n, 'k'`),
    statements: () => ({
      findDueQuery: findDueQuery(tables, {
        looks: ids.map((n) => ({ queue: `q${n}`, floorMs: 0 })),
        kinds: ['k'],
        horizonMs: 1_600,
      }),
      findOverlookedQuery: findOverlookedQuery(tables, {
        looks: numbers(200).map((n) => ({
          queue: `q${n}`,
          passed: ALL_BANDS.map(() => ({ floorMs: Date.now(), endMs: Date.now() })),
          after: undefined,
        })),
        kinds: ['k'],
        workerId: 8,
        slice: N,
      }),
      findJobsQuery: findJobsQuery(tables, ids),
      findRunnableQuery: findRunnableQuery(tables, ids),
      findCancellableQuery: findCancellableQuery(tables, {
        filter: {},
        force: true,
        after: 0,
        until: 10 * N,
        limit: N,
      }),
      countJobsQuery: countJobsQuery(tables),
      countSomeJobsQuery: countSomeJobsQuery(
        tables,
        ids.map((n) => `q${n}`),
      ),
      findHeadsQuery: findHeadsQuery(tables, 1_000),
      findPassedOverQuery: findPassedOverQuery(tables, 1_000),
      findBandsQuery: findBandsQuery(tables, { queues: undefined, group: undefined, limit: 100 }),
      findDueGroupsQuery: findDueGroupsQuery(
        grouped(),
        ids.map((n) => ({ queue: `q${n}` })),
      ),
      findStoppedGroupsQuery: findStoppedGroupsQuery(
        grouped(),
        ids.map((n) => `q${n}`),
      ),
    }),
  },
  ended: {
    fill: (n, first, queue) =>
      RESULTS(n, first, queue, 'discarded', {
        unique_key: `'key ' || n`,
        batch_id: 'n',
        group_key: `'g' || n`,
      }) +
      RESULTS(n, first + 1_000_000, queue, 'completed', { unique_key: `'key ' || n`, batch_id: `1000000` }),
    statements: () => ({
      redriveJobsQuery: redriveJobsQuery(tables, { queue: 'q' }, wakeUp),
      'redriveJobsQuery, any': redriveJobsQuery(tables, {}, wakeUp),
      'redriveJobsQuery, ids': redriveJobsQuery(tables, { queue: 'q', ids, after: 0, limit: N }),
      'redriveJobsQuery, members': redriveJobsQuery(withMembers, { queue: 'q' }),
      'redriveJobsQuery, members any': redriveJobsQuery(withMembers, {}),
      'redriveJobsQuery, groups': redriveJobsQuery(grouped('success'), {}),
      findDiscardedQuery: findDiscardedQuery(tables, { ids }),
      pruneResultsQuery: pruneResultsQuery(tables, { retentionMs: 1_000, limit: N }),
      pruneQueueQuery: pruneQueueQuery(tables, 'q', { retentionMs: 1_000, limit: N }),
      findExpiredQuery: findExpiredQuery(tables, 1_000),
      findFatesQuery: findFatesQuery(tables, 'q', heldJobs),
      findJobsQuery: findJobsQuery(tables, ids),
      findRequestsQuery: findRequestsQuery(tables, {
        workerId: 7,
        queues: ['q'],
        jobs: heldJobs.map((job) => ({ ...job, queue: 'q' })),
      }),
      findEndedJobsQuery: findEndedJobsQuery(tables, { search, after: { endedUs: 0, id: 0 }, limit: N }),
      listJobsQuery: listJobsQuery(tables, { ...page, limit: N }),
      browseJobsQuery: browseJobsQuery(tables, browse),
      'browseJobsQuery, group': browseJobsQuery(tables, {
        ...browse,
        search: { ...search, group: 'g3' },
        live: 'group',
        results: 'sought',
      }),
      groupErrorsQuery: groupErrorsQuery(tables, { scope, bound: N, limit: 10 }),
      findCauseQuery: findCauseQuery(tables, { scope, ids, finishedBefore: soon }),
      countOfCauseQuery: countOfCauseQuery(tables, cause),
      findOfCauseQuery: findOfCauseQuery(tables, { ...cause, after: 0, limit: N }),
      countManyQuery: countManyQuery(tables, { action: 'redrive', search, scope, ids }),
      findManyQuery: findManyQuery(tables, {
        action: 'redrive',
        search,
        scope,
        ids,
        after: 0,
        until: 10 * N,
        limit: N,
      }),
      countFinishedQuery: countFinishedQuery(tables, { scope, minutes: 600, bound: N }),
      countDiscardedQuery: countDiscardedQuery(tables, { scope, hours: 24, bound: N }),
      countResultsQuery: countResultsQuery(tables),
      findEndsQuery: findEndsQuery(all, ids, undefined),
      'findEndsQuery, one': findEndsQuery(all, [1_000_000], 'k'),
    }),
  },
  'a flow of many batches': {
    fill: (n, first, queue) =>
      JOBS(n, first, queue, { batch_id: 'n', blockers: '1' }).replace(
        "now() - interval '1 minute'",
        "'infinity'::timestamptz",
      ) +
      `
      insert into queue_batches (id, flow_id, total, pending, cancel_reason, waiting) overriding system value
        select n, ${first}, 2, 2, null, null from ${series(n, first)};
      insert into queue_waits (batch_id, job_id, queue, policy) select n, n + 1, '${queue}', 'cancel' from ${series(n - 1, first)};
      insert into queue_tallies (batch_id, ended, failed) select n, 2, 1 from ${series(n, first)};` +
      RESULTS(n, first + 2_000_000, queue, 'discarded', { batch_id: 'n - 2000000' }),
    statements: () => flowStatements,
  },
  'a flow that is to end': {
    fill: (n, first, queue) =>
      JOBS(n, first, queue, {
        batch_id: 'n',
        blockers: '1',
        cancel_reason: `case when n % 2 = 0 then 'no' end`,
      }) +
      `
      insert into queue_batches (id, flow_id, total, pending, cancel_reason, waiting) overriding system value
        select n, ${first}, 2, 2, 'no', null from ${series(n, first)};
      insert into queue_waits (batch_id, job_id, queue, policy) select n, n + 1, '${queue}', 'cancel' from ${series(n - 1, first)};` +
      RESULTS(n, first + 2_000_000, queue, 'cancelled', { batch_id: 'n - 2000000' }),
    statements: () => flowStatements,
  },
  'a flow that has ended': {
    fill: (n, first, queue) => `
      insert into queue_batches (id, flow_id, total, pending, failed, ended_at) overriding system value
        select n, ${first}, 2, 0, 1, now() - interval '2 days' from ${series(n, first)};
      insert into queue_tallies (batch_id, ended, failed) select n + 5000000, 2, 1 from ${series(n, first)};
      insert into queue_waits (batch_id, job_id, queue, policy) select n, n + 1, '${queue}', 'cancel' from ${series(n, first)};`,
    statements: () => flowStatements,
  },
  'a flow of discarded jobs': {
    fill: (n, first, queue) =>
      `
      insert into queue_batches (id, flow_id, total, pending, failed, ended_at) overriding system value
        select n, ${first}, 2, 0, 1, now() - interval '2 days' from ${series(n, first)};
      insert into queue_waits (batch_id, job_id, queue, policy) select n, n + 2000001, '${queue}', 'cancel' from ${series(n, first)};
      insert into queue_waits (batch_id, job_id, queue, policy) select n, n + 2000000, '${queue}', 'parent' from ${series(n, first)};` +
      RESULTS(n, first + 2_000_000, queue, 'discarded', { batch_id: 'n - 2000000' }),
    statements: () => flowStatements,
  },
  'a batch of many': {
    fill: (n, first, queue) =>
      JOBS(n, first, queue, { batch_id: `${first}` }) +
      JOBS(n, first + 1_000_000, queue, { blockers: '1' }).replace(
        "now() - interval '1 minute'",
        "'infinity'::timestamptz",
      ) +
      `
      insert into queue_batches (id, flow_id, total, pending, failed, cancel_reason, waiting) overriding system value
        values (${first}, ${first}, ${2 * n}, ${n}, 1, 'no', 'failure');
      insert into queue_waits (batch_id, job_id, queue, policy) select ${first}, n, '${queue}', 'cancel' from ${series(n, first + 1_000_000)};
      insert into queue_tallies (batch_id, ended, failed) select ${first}, 1, 1 from ${series(n, first)};` +
      RESULTS(n, first + 2_000_000, queue, 'discarded', { batch_id: `${first}` }),
    statements: () => ({
      foldTalliesQuery: foldTalliesQuery(all, { channel, locks: 'wait' }),
      'foldTalliesQuery, groups': foldTalliesQuery(grouped(), { ids: [1], channel, locks: 'briefly' }),
      countBatchQuery: countBatchQuery(all, 1),
      findMembersQuery: findMembersQuery(all, [1], 0),
      endMembersQuery: endMembersQuery(all, { queue: 'q', ids, channel }),
      'endMembersQuery, groups': endMembersQuery(grouped('end'), { queue: 'q', ids, channel }),
      findUnwokenQuery: findUnwokenQuery(all, [1], 0),
      findUnclaimedQuery: findUnclaimedQuery(all, [1], [1], 0),
      findEndsQuery: findEndsQuery(all, [1], undefined),
      wakeWaitersQuery: wakeWaitersQuery(all, { queue: 'q', ids: numbers(N, 1_000_001), channel }),
      findGroupJobsQuery: findGroupJobsQuery(all, {
        batchId: 1,
        kind: 'k',
        after: [],
        state: undefined,
        above: 0,
        limit: N,
        scope,
        excerpt: 100,
      }),
      findFlowGroupsQuery: findFlowGroupsQuery(all, 1, scope),
      findFlowsQuery: findFlowsQuery(all, {
        state: undefined,
        before: undefined,
        limit: 51,
        searchLimit: 10_000,
      }),
      reopenBatchesQuery: reopenBatchesQuery(all, 1),
      parkWaitersQuery: parkWaitersQuery(all, {
        flowId: 1,
        unbegun: numbers(N, 1_000_001),
        hasBegun: hasBegun(all),
      }),
      countOpenFlowsQuery: countOpenFlowsQuery(all),
      growBatchQuery: growBatchQuery(all, 1, 2),
      tallyMissingQuery: tallyMissingQuery(all, { batchId: 1, missing: 2, failed: 1, recountedAt: null }),
      findTalliedQuery: findTalliedQuery(all, [2]),
      findFlowOfJobQuery: findFlowOfJobQuery(all, 1),
    }),
  },
  'a job that waits for many': {
    fill: (n, first, queue) =>
      JOBS(1, first, queue, { ...HELD, blockers: `${-n}` }) +
      JOBS(1, first + 1, queue, { blockers: `${n}` }).replace(
        "now() - interval '1 minute'",
        "'infinity'::timestamptz",
      ) +
      JOBS(1, first + 2, queue, { blockers: `${-n}` }).replace(
        "now() - interval '1 minute'",
        "'infinity'::timestamptz",
      ) +
      `
      insert into queue_batches (id, flow_id, total, pending, waiting) overriding system value
        select n, ${first}, 2, 0, 'end' from ${series(n, first)};
      insert into queue_waits (batch_id, job_id, queue, policy) select n, ${first}, '${queue}', 'parent' from ${series(n, first)};
      insert into queue_waits (batch_id, job_id, queue, policy) select n, ${first + 1}, '${queue}', 'run' from ${series(n, first)};
      insert into queue_waits (batch_id, job_id, queue, policy) select n, ${first + 2}, '${queue}', 'detached' from ${series(n, first)};
      insert into queue_tallies (batch_id, ended, failed) select n, 2, 1 from ${series(n, first)};`,
    statements: () => flowStatements,
  },
  'many parents that wait': {
    fill: (n, first, queue) =>
      JOBS(n, first, queue, { blockers: '-2' }).replace(
        "now() - interval '1 minute'",
        "'infinity'::timestamptz",
      ) +
      `
      insert into queue_batches (id, total, pending, failed, waiting, ended_at) overriding system value
        select n, 2, 0, 1, 'failure', case when n % 2 = 0 then now() - interval '2 days' end from ${series(n, first)};
      insert into queue_waits (batch_id, job_id, queue, policy) select n, n, '${queue}', 'parent' from ${series(n, first)};`,
    statements: () => flowStatements,
  },
  schedules: {
    fill: (n, first, queue) => `
      insert into queue_schedules (name, queue, kind, payload, settings, every_ms, time_zone, catch_up, overlap, next_at, passed_at,
        declared_by, seen_at, created_at)
      select 's' || n, '${queue}', 'k', '1', '{"priority":5,"maxAttempts":20,"metadata":{},"own":{}}', 1000, 'UTC', 'latest', true,
        now(), now() - interval '1 day', case when n % 2 = 0 then 3 end, now() - interval '1 day', now() from ${series(n, first)};`,
    statements: () => {
      const names = ids.map((n) => `s${n}`);
      const schedule = (name: string) =>
        ({
          name,
          queue: 'q',
          kind: 'k',
          payload: '1',
          settings: '{}',
          cron: null,
          everyMs: 1_000,
          timeZone: 'UTC',
          startsAtMs: null,
          endsAtMs: null,
          catchUp: 'latest',
          overlap: true,
        }) as const;
      const tidying = { declared: names, renewMs: 1_000, forgetMs: 10_000 };
      return {
        declareSchedulesQuery: declareSchedulesQuery(scheduleTables, {
          workerId: 7,
          schedules: names.map(schedule),
          unfit: names,
        }),
        'declareSchedulesQuery, new': declareSchedulesQuery(scheduleTables, {
          workerId: 7,
          schedules: names.map((name) => schedule(`new ${name}`)),
          unfit: [],
        }),
        fireSchedulesQuery: fireSchedulesQuery(
          scheduleTables,
          names.map((name) => ({ name, revision: 0, ticks: [1e12], passedMs: 1e12, nextMs: 1e12 + 1 })),
          channel,
        ),
        'fireSchedulesQuery, one with many ticks': fireSchedulesQuery(
          scheduleTables,
          [{ name: 's1', revision: 0, ticks: ids.map((n) => 1e12 + n), passedMs: 1e12, nextMs: 1e12 + 1 }],
          channel,
        ),
        'fireSchedulesQuery, groups': fireSchedulesQuery(
          inContext({ ...grouped(), queueSchedules }, {}),
          names.map((name) => ({ name, revision: 0, ticks: [1e12], passedMs: 1e12, nextMs: 1e12 + 1 })),
          channel,
        ),
        findDueSchedulesQuery: findDueSchedulesQuery(scheduleTables, {
          declared: names,
          kinds: names,
          except: names,
          horizonMs: 1_000,
          limit: N,
        }),
        findSchedulesQuery: findSchedulesQuery(scheduleTables, { queues: names, limit: N }),
        tidySchedulesQuery: tidySchedulesQuery(scheduleTables, tidying),
        'tidySchedulesQuery, none': tidySchedulesQuery(scheduleTables, {
          ...tidying,
          declared: names.map((name) => `x${name}`),
        }),
        renewSchedulesQuery: renewSchedulesQuery(scheduleTables, tidying),
        forgetSchedulesQuery: forgetSchedulesQuery(scheduleTables, {
          ...tidying,
          declared: names.map((name) => `x${name}`),
        }),
      };
    },
  },
  metrics: {
    fill: (n, first, queue) => `
      insert into queue_metrics (worker_id, report, at, minutes, queue, kind, completed, wait, run)
      select 1, n, date_trunc('hour', now() - interval '3 days') + n * interval '1 ms', 1, '${queue}', 'k' || n, 3, '{"3": 5}', '{"4": 5}' from ${series(n, first)};`,
    statements: () => ({
      foldMetricsQuery: foldMetricsQuery(metrics),
      sumMetricsQuery: sumMetricsQuery(metrics, 10_000, false),
      'sumMetricsQuery, hourly': sumMetricsQuery(metrics, 10_000, true),
      reportMetricsQuery: reportMetricsQuery(
        metrics,
        7,
        ids.map((n) => ({
          report: 1,
          queue: 'q',
          kind: `k${n}`,
          completed: 3,
          retried: 1,
          discarded: 1,
          cancelled: 0,
          snoozed: 0,
          interrupted: 0,
          lost: 0,
          waitMs: 12,
          runMs: 40,
          wait: { 3: 5 },
          run: { 6: 5 },
        })),
      ),
    }),
  },
  'metrics that are over': {
    fill: (n, first, queue) => `
      insert into queue_metrics (worker_id, report, at, minutes, queue, kind, completed, wait, run)
      select 1, n, now() - interval '40 days', 60, '${queue}', 'k' || n, 3, '{"3": 5}', '{"4": 5}' from ${series(n, first)};`,
    statements: () => ({ pruneMetricsQuery: pruneMetricsQuery(metrics, N) }),
  },
  keys: {
    fill: (n, first, queue) => `
      insert into queue_keys (queue, kind, key, until) select '${queue}', 'k', 'key ' || n, now() - interval '1 hour' from ${series(n, first)};`,
    statements: () => ({
      pruneKeysQuery: pruneKeysQuery(keyTables, N),
      pruneKeysOfQuery: pruneKeysOfQuery(keyTables, 'q', N),
      findOverKeysQuery: findOverKeysQuery(keyTables),
    }),
  },
  groups: {
    fill: (n, first, queue) =>
      JOBS(n, first, queue, { ...HELD, group_key: `'g' || n` }) +
      WORKERS(1, 7) +
      `
      insert into queue_groups (queue, group_key, ready_at, held) select '${queue}', 'g' || n, now(), array[n] from ${series(n, first)};
      insert into queue_holds (queue, group_key, job_id, until, worker_id) select '${queue}', 'g' || n, n, 'infinity', 7 from ${series(n, first)};
      insert into queue_limits (queue, group_key, concurrency) select '${queue}', 'g' || n, 2 from ${series(n, first)};
      insert into queue_limits (queue, kind, concurrency) select '${queue}', 'k' || n, 2 from ${series(n, first)};
      insert into queue_usage (queue, kind) select '${queue}', 'k' || n from ${series(n, first)};`,
    statements: () => ({
      findGroupsQuery: findGroupsQuery(grouped(), { queue: 'q', after: '', limit: N }, ['k'], false),
      'findGroupsQuery, in order': findGroupsQuery(
        grouped('end'),
        { queue: 'q', after: '', limit: N },
        ['k'],
        true,
      ),
      endHandlerHoldsQuery: endHandlerHoldsQuery(
        grouped(),
        holder,
        ids.map((id) => ({ id, group: `g${id}` })),
      ),
      findStoppedGroupsQuery: findStoppedGroupsQuery(
        grouped(),
        ids.map((n) => `q${n}`),
      ),
      findDueGroupsQuery: findDueGroupsQuery(
        grouped(),
        ids.map((n) => ({ queue: `q${n}` })),
      ),
      findGroupedDueIdsQuery: findGroupedDueIdsQuery(
        grouped(),
        groupClaimOf(7, { limit: N, without: numbers(N / 2) }),
      ),
      findLeasesQuery: findLeasesQuery(
        { ...tables, ...limitTables },
        7,
        ids.map((n) => ({ queue: 'q', kind: `k${n}`, declared: 10 })),
      ),
      findLimitsQuery: findLimitsQuery({ ...tables, ...limitTables }, 'q'),
      findGroupLimitsQuery: findGroupLimitsQuery(
        { ...tables, ...limitTables },
        { queue: 'q', after: '', limit: N },
      ),
      'setLimitQuery, removing, of every group': setLimitQuery(grouped(), {
        queue: 'q',
        kind: '',
        group: '*',
        override: null,
      }),
      setLimitQuery: setLimitQuery(grouped(), {
        queue: 'q',
        kind: '',
        group: '*',
        override: { concurrency: 3 },
      }),
      'cancelJobsQuery, groups forced': cancelJobsQuery(grouped('end'), {
        ...slice,
        reason: error,
        force: { channel },
      }),
    }),
  },
  leases: {
    fill: (n, first, queue) => `
      insert into queue_workers (id, name, queues) overriding system value select n, 'w', '["q"]' from ${series(n, first)};
      insert into queue_limits (queue, concurrency) values ('${queue}', 50000);
      insert into queue_usage (queue, leases) select '${queue}', jsonb_object_agg(n, jsonb_build_array(4, 10, 0)) from ${series(n, first)};`,
    statements: () => ({
      takeLeaseQuery: takeLeaseQuery(
        { ...tables, ...limitTables },
        { queue: 'q', kind: '', workerId: 7, declared: 10, running: 4, want: 10, wants: 10, era: 0 },
      ),
      findLeasesQuery: findLeasesQuery({ ...tables, ...limitTables }, 7, [
        { queue: 'q', kind: '', declared: 10 },
      ]),
    }),
  },
  'a job of many steps': {
    fill: (n, first, queue) =>
      JOBS(1, first, queue, HELD) +
      WORKERS(1, 7) +
      `
      insert into queue_steps (job_id, queue, name, kind, signal, output, fence, started_at, ended_at)
        select ${first}, '${queue}', 's' || n, case when n % 3 = 0 then 'enqueue' else 'run' end, 'sig' || n, jsonb_build_object('batch', n), 1,
          now() + n * interval '1 ms', now() + n * interval '1 ms' from ${series(n, first)};
      insert into queue_steps (job_id, queue, name, kind, output, fence, started_at, ended_at)
        select ${first}, '${queue}', 'undo:s' || n, 'run', '1', 1, now() + n * interval '1 ms', now() + n * interval '1 ms' from ${series(n, first)};
      insert into queue_batches (id, total, pending, ended_at) overriding system value select n, 1, 0, now() from ${series(n, first)};
      insert into queue_waits (batch_id, job_id, queue, policy) select n, ${first}, '${queue}', 'run' from ${series(n, first)};
      insert into queue_mailboxes (job_id, queue, name, sent, received) select ${first}, '${queue}', 'sig' || n, '[]', 1 from ${series(n, first)};`,
    statements: () => ({
      copyStepsQuery: copyStepsQuery(all, { queue: 'q', id: 1, from: `s${N}`, to: 5 }),
      forgetStepsQuery: forgetStepsQuery(all, { queue: 'q', id: 1, from: `s${N}` }),
      findStepsQuery: findStepsQuery(all, { ids: [1], queue: 'q' }),
      findStepNamesQuery: findStepNamesQuery(all, { queue: 'q', id: 1 }, N),
      showStepsQuery: showStepsQuery(all, { id: 1, queue: 'q', cut: 100, limit: N }),
      findMailboxesQuery: findMailboxesQuery(all, 1),
      recordStepsQuery: recordStepsQuery(
        all,
        holder,
        ids.map((n) => ({
          id: 1,
          fence: 1,
          name: `s${n}`,
          kind: 'run',
          tookMs: 1,
          output: '1',
          ended: true,
        })),
        'briefly',
      ),
      findWaitedQuery: findWaitedQuery(all, { id: 1, queue: 'q' }),
      isBlockedQuery: isBlockedQuery(all, { id: 1, queue: 'q' }),
      receiveSignalQuery: receiveSignalQuery(
        all,
        holder,
        { id: 1, fence: 1, name: 'wait', signal: 'sig3', at: 1, timeoutMs: 1_000 },
        'briefly',
      ),
    }),
  },
  'a job of many signals': {
    fill: (n, first, queue) =>
      JOBS(1, first, queue, HELD) +
      `
      insert into queue_mailboxes (job_id, queue, name, sent, received) select ${first}, '${queue}', 'sig',
        jsonb_agg(jsonb_build_object('id', n::text, 'value', n)), 0 from ${series(n, first)};`,
    statements: () => ({
      sendSignalQuery: sendSignalQuery(all, {
        to: { queue: 'q', id: 1 },
        name: 'sig',
        signalId: 'x',
        value: '1',
        key: undefined,
      }),
      'sendSignalQuery, once': sendSignalQuery(all, {
        to: { queue: 'q', id: 1 },
        name: 'sig',
        signalId: 'x',
        value: '1',
        key: 'x',
      }),
      receiveSignalQuery: receiveSignalQuery(
        all,
        holder,
        { id: 1, fence: 1, name: 'wait', signal: 'sig', at: 1, timeoutMs: 1_000 },
        'briefly',
      ),
    }),
  },
  'steps that are left': {
    fill: (n, first, queue) =>
      `
      insert into queue_steps (job_id, queue, name, kind, fence, started_at) select n, '${queue}', 's', 'run', 1, now() from ${series(n, first)};
      insert into queue_mailboxes (job_id, queue, name) select n, '${queue}', 's' from ${series(n, first)};` +
      JOBS(n, first + 1_000_000, queue) +
      RESULTS(n, first + 2_000_000, queue, 'completed'),
    statements: () => ({
      findLeftRowsQuery: findLeftRowsQuery(all, 'queueSteps', undefined, N),
      'findLeftRowsQuery, mailboxes': findLeftRowsQuery(all, 'queueMailboxes', undefined, N),
      deleteLeftRowsQuery: deleteLeftRowsQuery(all, 'queueSteps', 'q', ids),
      'deleteLeftRowsQuery, mailboxes': deleteLeftRowsQuery(all, 'queueMailboxes', 'q', ids),
    }),
  },
};

const flowStatements = {
  foldTalliesQuery: foldTalliesQuery(all, { channel, locks: 'wait' }),
  'foldTalliesQuery, ids': foldTalliesQuery(all, { ids, channel, locks: 'briefly' }),
  'foldTalliesQuery, groups': foldTalliesQuery(grouped(), { ids, channel, locks: 'briefly' }),
  'foldTalliesQuery, without waking': foldTalliesQuery(all, { ids, channel, locks: 'briefly', wakes: false }),
  addWaitsQuery: addWaitsQuery(
    all,
    ids.map((id) => ({ batchId: id, jobId: id + 9, queue: 'q', policy: 'run' })),
  ),
  openBatchesQuery: openBatchesQuery(all, ids, true),
  cancelBatchesQuery: cancelBatchesQuery(all, ids, 'no'),
  cancelFlowQuery: cancelFlowQuery(all, 1, 'no'),
  findLiveMembersQuery: findLiveMembersQuery(all, ids),
  findMembersQuery: findMembersQuery(all, ids, 0),
  endMembersQuery: endMembersQuery(all, { queue: 'q', ids, channel }),
  'endMembersQuery, groups': endMembersQuery(grouped('end'), { queue: 'q', ids, channel }),
  endUnclaimedQuery: endUnclaimedQuery(withMembers, { queue: 'q', ids }),
  'endUnclaimedQuery, groups': endUnclaimedQuery(grouped('end'), { queue: 'q', ids }),
  findUnclaimedQuery: findUnclaimedQuery(all, ids, ids, 0),
  findUnwokenQuery: findUnwokenQuery(all, ids, 0),
  wakeWaitersQuery: wakeWaitersQuery(all, { queue: 'q', ids, channel }),
  'wakeWaitersQuery, groups': wakeWaitersQuery(grouped(), { queue: 'q', ids, channel }),
  findToldMembersQuery: findToldMembersQuery(all, 1),
  lockFlowQuery: lockFlowQuery(all, 1),
  spareMembersQuery: spareMembersQuery(all, { queue: 'q', ids }),
  parkWaitersQuery: parkWaitersQuery(all, { flowId: 1, unbegun: ids, hasBegun: hasBegun(all) }),
  reopenBatchesQuery: reopenBatchesQuery(all, 1),
  reopenReturnedQuery: reopenReturnedQuery(all, holder, { id: 1, fence: 1, batchIds: ids }, 'briefly'),
  waitForBatchesQuery: waitForBatchesQuery(
    all,
    holder,
    { id: 1, fence: 1, batchIds: ids, failFast: true },
    'briefly',
  ),
  findFlowQuery: findFlowQuery(all, 1),
  findFlowBatchesQuery: findFlowBatchesQuery(all, 1),
  findFlowGroupsQuery: findFlowGroupsQuery(all, 1, scope),
  findFlowsQuery: findFlowsQuery(all, {
    state: undefined,
    before: undefined,
    limit: 51,
    searchLimit: 10_000,
  }),
  findFlowOfJobQuery: findFlowOfJobQuery(all, 1),
  findOpenBatchesQuery: findOpenBatchesQuery(all, 0, N),
  findTalliedQuery: findTalliedQuery(all, [2]),
  countOpenFlowsQuery: countOpenFlowsQuery(all),
  countBatchQuery: countBatchQuery(all, 1),
  findEndsQuery: findEndsQuery(all, ids, undefined),
  findLeftBatchesQuery: findLeftBatchesQuery(all, { after: 0, until: undefined }),
  deleteLeftBatchesQuery: deleteLeftBatchesQuery(all, ids),
  findWaitedQuery: findWaitedQuery(all, { id: 2, queue: 'q' }),
  isBlockedQuery: isBlockedQuery(all, { id: 2, queue: 'q' }),
};

/** Gathers statistics as they are by then, and adds many rows. */
async function fill({ fill: rowsOf }: Situation, statistics: string): Promise<void> {
  const { client } = database;
  await client.unsafe(`truncate ${TABLES}`);
  if (statistics === 'of three rows') await client.unsafe(rowsOf(3, 900_000, 'another'));
  if (statistics === 'never gathered') {
    await client`delete from pg_statistic where starelid = any(${NAMES}::text[]::regclass[])`;
  } else {
    await client.unsafe(`analyze ${TABLES}`);
  }
  await client.unsafe(rowsOf(N, 1, 'q'));
  // Above the ids that are given here.
  await client`select setval('queue_jobs_id_seq', 10000000), setval('queue_batches_id_seq', 10000000)`;
}

/**
 * Removes what rolled back statements have left in tables, and keeps the statistics: a table that has grown
 * is expected to have more rows.
 */
async function clean(names: readonly string[]): Promise<void> {
  if (names.length === 0) return;
  const { client } = database;
  const known = await client<{ oid: number; relpages: number; reltuples: number }[]>`
    select oid, relpages, reltuples from pg_class
    where oid = any(${names}::text[]::regclass[])
      or oid in (select indexrelid from pg_index where indrelid = any(${names}::text[]::regclass[]))`;
  await client.unsafe(`vacuum ${names.join(', ')}`);
  const rows = known.map(({ oid, relpages, reltuples }) => `(${oid}, ${relpages}, ${reltuples})`);
  await client.unsafe(`
    update pg_class as c set relpages = k.pages, reltuples = k.tuples
    from (values ${rows.join(', ')}) as k(oid, pages, tuples) where c.oid = k.oid`);
}

/**
 * These are sent for a thousand at once at most, which are half a million pairs, or are never prepared.
 * Nothing else compares all with all.
 */
const BOUNDED: ReadonlySet<string> = new Set([
  'cancelJobsQuery, groups forced',
  'endMembersQuery',
  'endMembersQuery, groups',
  'findSchedulesQuery',
  'pruneKeysOfQuery',
]);

describe.each(['of no rows', 'of three rows', 'never gathered'])('with statistics %s', (statistics) => {
  test.each(Object.entries(situations))('%s: no statement compares all with all', async (_, situation) => {
    await fill(situation, statistics);
    const tooMany: unknown[] = [];
    for (const [name, query] of Object.entries(situation.statements())) {
      for (const mode of ['force_custom_plan', 'force_generic_plan'] as const) {
        // Its generic plan costs so much that Postgres never takes it.
        if (BOUNDED.has(name) || (mode === 'force_generic_plan' && isPlannedAnew(query))) continue;
        const { written, ...looks } = await looksOf(database, query, mode);
        if (looks.rows > MOST_ROWS || looks.pages > MOST_PAGES) tooMany.push({ name, mode, ...looks });
        await clean(written);
      }
    }
    expect(tooMany).toEqual([]);
  });
});
