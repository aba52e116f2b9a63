import { Queue } from '../../core/queue/queue.ts';
import type { MakeQueueLimiting } from '../../core/queue/queue-limits.ts';
import type { MakeQueueWorkflows, WorkflowsWith } from '../../core/queue/queue-workflows.ts';
import {
  type QueueTables,
  queueJobs,
  queuePauses,
  queueResults,
  queueWorkers,
} from '../../core/schema/index.ts';
import type { OwnColumns, OwnColumnsOf } from '../../core/schema/own-columns.ts';
import type { Executor, Transaction } from '../../core/sql/executor.ts';
import { keysOfQueue } from '../../features/keys/keys-of-queue.ts';
import { metricsOfQueue } from '../../features/metrics/metrics-of-queue.ts';
import type { Schedules } from '../../features/schedules/schedules.ts';
import type { MakeSchedules } from '../../features/schedules/schedules-in.ts';
import type { NoLimits, NoSchedules, NoWorkflows } from './absent-features.ts';
import { type CreateQueueOptions, checkQueueOptions } from './queue-options.ts';

/**
 * A queue over the tables of `drizzle-queue/schema`, or over others. It opens no connection: create it once,
 * at the top of a module that both the web app and the workers import.
 *
 * @throws RangeError | TypeError when an option is wrong
 */
export function createQueue<
  TTables extends QueueTables = QueueTables,
  TSchedules extends MakeSchedules | undefined = undefined,
  TLimits extends MakeQueueLimiting | undefined = undefined,
  TRequired extends boolean = false,
  TWorkflows extends MakeQueueWorkflows | undefined = undefined,
>(
  options: CreateQueueOptions<TTables, TSchedules, TLimits, TRequired, TWorkflows> = {},
): Queue<
  OwnOf<TTables>,
  SchedulesOf<TTables, TSchedules>,
  LimitsOf<TLimits>,
  ExecutorOf<TRequired>,
  WorkflowsOf<TTables, TWorkflows>
> {
  checkQueueOptions(options);
  const { tables = { queueJobs, queueResults, queueWorkers, queuePauses }, keys, metrics } = options;
  return new Queue(tables, {
    ...options,
    keys: keysOfQueue(keys),
    metrics: metrics && metricsOfQueue(metrics),
    toCheck: async (queue) => (await import('./features-to-check.ts')).featuresToCheck(queue),
  });
}

/** The same as `OwnColumnsOf` alone, which an editor would print as the table with all its columns. */
type OwnOf<TTables extends QueueTables> = [QueueTables] extends [TTables]
  ? OwnColumns
  : OwnColumnsOf<TTables['queueJobs']>;

type SchedulesOf<TTables extends QueueTables, TSchedules> = TSchedules extends MakeSchedules
  ? Schedules<OwnOf<TTables>>
  : NoSchedules;

/** Of a `boolean` that only the run time knows, too, a transaction is right. */
type ExecutorOf<TRequired> = [TRequired] extends [false] ? Executor : Transaction;

type WorkflowsOf<TTables extends QueueTables, TWorkflows> =
  TWorkflows extends MakeQueueWorkflows<infer TMade> ? WorkflowsWith<TMade, OwnOf<TTables>> : NoWorkflows;

type LimitsOf<TLimits> = TLimits extends MakeQueueLimiting<infer TMade> ? TMade : NoLimits;
