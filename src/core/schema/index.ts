/**
 * The tables of drizzle-queue, for the app's own Drizzle schema: `export * from 'drizzle-queue/schema'`. This
 * entry loads nothing but drizzle-orm.
 */
import { createQueueTables, type QueueTables } from './create-queue-tables.ts';

const tables: QueueTables<'queue_', undefined> = createQueueTables();

/** `queue_jobs`: the work that is still to do. */
export const queueJobs: QueueTables<'queue_', undefined>['queueJobs'] = tables.queueJobs;
/** `queue_results`: what became of each finished job. */
export const queueResults: QueueTables<'queue_', undefined>['queueResults'] = tables.queueResults;
/** `queue_workers`: who is alive. */
export const queueWorkers: QueueTables<'queue_', undefined>['queueWorkers'] = tables.queueWorkers;
/** `queue_pauses`: which queues are paused. */
export const queuePauses: QueueTables<'queue_', undefined>['queuePauses'] = tables.queuePauses;

export type { AttemptError } from './attempt-error.ts';
export { createQueueTables, type QueueTables, type QueueTablesOptions } from './create-queue-tables.ts';
export type { OwnColumns, OwnColumnsOf } from './own-columns.ts';
export type { JobColumns, JobsTable } from './queue-jobs.ts';
export type { PauseColumns, PausesTable } from './queue-pauses.ts';
export type { FinalState, ResultColumns, ResultsTable } from './queue-results.ts';
export type { WorkerColumns, WorkersTable } from './queue-workers.ts';
