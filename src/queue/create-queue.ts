import { type QueueTables, queueJobs, queuePauses, queueResults, queueWorkers } from '../schema/index.ts';
import type { OwnColumnsOf } from '../schema/own-columns.ts';
import { type CreateQueueOptions, checkQueueOptions } from './options.ts';
import { Queue } from './queue.ts';

/**
 * A queue over the tables of `drizzle-queue/schema`, or over others. It opens no connection: create it once,
 * at the top of a module that both the web app and the workers import.
 *
 * @throws RangeError | TypeError when an option is wrong
 */
export function createQueue<TTables extends QueueTables = QueueTables>(
  options: CreateQueueOptions<TTables> = {},
): Queue<OwnColumnsOf<TTables['queueJobs']>> {
  checkQueueOptions(options);
  return new Queue(options.tables ?? { queueJobs, queueResults, queueWorkers, queuePauses }, options);
}
