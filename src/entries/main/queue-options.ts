import { is } from 'drizzle-orm';
import { PgTable } from 'drizzle-orm/pg-core';
import { checkOptions, namesOf } from '../../core/job/known-options.ts';
import { checkBoolean, checkInteger, checkObject, LARGEST_MAX_PAYLOAD_BYTES } from '../../core/job/limits.ts';
import { shown } from '../../core/job/shown.ts';
import type { Around } from '../../core/queue/enqueue/around.ts';
import type { MakeQueueLimiting } from '../../core/queue/queue-limits.ts';
import type { MakeQueueWorkflows } from '../../core/queue/queue-workflows.ts';
import {
  type QueueTables,
  queueJobs,
  queuePauses,
  queueResults,
  queueWorkers,
} from '../../core/schema/index.ts';
import { CONTROL_ENTRY } from '../../features/control/control-entry.ts';
import type { ControlTables } from '../../features/control/index.ts';
import type { MetricsTables } from '../../features/metrics/schema/index.ts';
import { METRICS_ENTRY } from '../../features/metrics/sql/metrics-entry.ts';
import type { MakeSchedules } from '../../features/schedules/schedules-in.ts';

/** The options of {@link createQueue}. */
export interface CreateQueueOptions<
  TTables extends QueueTables = QueueTables,
  TSchedules extends MakeSchedules | undefined = MakeSchedules | undefined,
  TLimits extends MakeQueueLimiting | undefined = MakeQueueLimiting | undefined,
  TRequired extends boolean = boolean,
  TWorkflows extends MakeQueueWorkflows | undefined = MakeQueueWorkflows | undefined,
> {
  /** The queue's tables, from `createQueueTables`. @default the tables of `drizzle-queue/schema` */
  tables?: TTables | undefined;
  /**
   * Whether an enqueue of due jobs notifies the workers (`NOTIFY`), in the caller's transaction: each, up to
   * 250 jobs a second, and beyond that some; the same for `cancel` of a running job, `pause` and `resume`.
   * Workers also poll: without notifications jobs start a little later, and a listening worker learns of a
   * cancel or a pause up to six seconds later. Turn it off where Postgres has no `NOTIFY`, no worker listens,
   * or enqueues run in transactions that are prepared (`PREPARE TRANSACTION` refuses notifying ones).
   * @default true
   */
  wakeUps?: boolean | undefined;
  /**
   * The largest payload, in bytes of its JSON text, 1 to 104,857,600; the same for its metadata. A larger one
   * is an `InvalidPayloadError` of `enqueue` and `enqueueMany`; the rows of `enqueueFrom` are not measured.
   * Jobs are copied often, and a worker holds many at once: store large data elsewhere, and refer to it.
   * @default 1_048_576 (1 MB)
   */
  maxPayloadBytes?: number | undefined;
  /**
   * Whether `enqueue`, `enqueueMany`, `enqueueFrom`, `enqueueFlow` and `enqueueBatch` take transactions only.
   * With a plain `db` a job commits by itself, also inside `db.transaction(…)` where `tx` was meant: its
   * rollback leaves the job, and on a pool of one connection it waits forever. `enqueueQuery`, for batches
   * of the driver, and `run` take a `db` anyway.
   * @default false
   */
  requireTransaction?: TRequired | undefined;
  /** Functions around every enqueue and every attempt: see {@link Around}. @default none, at no cost */
  around?: Around | undefined;
  /** `schedulesIn(queueSchedules)`, for `queue.schedules` and firing workers. @default none, at no cost */
  schedules?: TSchedules;
  /** `limitsIn(control, { … })`, for limits of queues, kinds and groups. @default none, at no cost */
  limits?: TLimits;
  /** `workflowsIn(workflows)`, for `step` in handlers and `queue.workflows`. @default none, at no cost */
  workflows?: TWorkflows;
  /**
   * `queueKeys` of 'drizzle-queue/schema/control', for `throttle` and `unique: { forMs }` of an enqueue;
   * workers prune it. @default none
   */
  keys?: ControlTables['queueKeys'] | undefined;
  /**
   * `queueMetrics` of 'drizzle-queue/schema/metrics': workers write what they do once a minute, for the rates
   * and percentiles of `queue.stats` and `queue.vitals`. @default none, at no cost
   */
  metrics?: MetricsTables['queueMetrics'] | undefined;
}

const OPTIONS = namesOf<CreateQueueOptions>({
  tables: true,
  wakeUps: true,
  maxPayloadBytes: true,
  requireTransaction: true,
  around: true,
  schedules: true,
  limits: true,
  workflows: true,
  keys: true,
  metrics: true,
});
const AROUND = namesOf<Around>({ enqueue: true, run: true, runBatch: true });

/** For callers without TypeScript. @throws RangeError | TypeError naming the option or table that is wrong */
export function checkQueueOptions(options: CreateQueueOptions): void {
  checkOptions('createQueue: options', options, OPTIONS);
  const { tables, wakeUps, maxPayloadBytes, requireTransaction } = options;
  const { around, schedules, limits, workflows, keys, metrics } = options;
  for (const [name, given] of Object.entries({ wakeUps, requireTransaction })) {
    if (given !== undefined) checkBoolean(`createQueue: ${name}`, given);
  }
  if (maxPayloadBytes !== undefined) {
    checkInteger('createQueue: maxPayloadBytes', maxPayloadBytes, 1, LARGEST_MAX_PAYLOAD_BYTES);
  }
  if (around !== undefined) checkAround(around);
  for (const [name, given] of Object.entries({ schedules, limits, workflows })) {
    if (given !== undefined && typeof given !== 'function') {
      throw new TypeError(`createQueue: ${name} must be ${name}In(…), got ${shown(given)}`);
    }
  }
  if (keys !== undefined) checkTable('keys', 'queueKeys', CONTROL_ENTRY, keys);
  if (metrics !== undefined) checkTable('metrics', 'queueMetrics', METRICS_ENTRY, metrics);
  if (tables === undefined) return;
  checkObject('createQueue: tables', tables);
  for (const name of Object.keys({
    queueJobs,
    queueResults,
    queueWorkers,
    queuePauses,
  } satisfies QueueTables)) {
    const table: unknown = Reflect.get(tables, name);
    if (!is(table, PgTable)) {
      throw new TypeError(
        `createQueue: tables.${name} must be a table that createQueueTables() returned, got ${shown(table)}`,
      );
    }
  }
}

function checkTable(option: string, name: string, entry: string, given: unknown): void {
  if (is(given, PgTable)) return;
  throw new TypeError(`createQueue: ${option} must be the table ${name} of '${entry}', got ${shown(given)}`);
}

function checkAround(around: Around): void {
  const { enqueue, run, runBatch } = checkOptions('createQueue: around', around, AROUND);
  for (const [name, given] of Object.entries({ enqueue, run, runBatch })) {
    if (given !== undefined && typeof given !== 'function') {
      throw new TypeError(`createQueue: around.${name} must be a function, got ${shown(given)}`);
    }
  }
}
