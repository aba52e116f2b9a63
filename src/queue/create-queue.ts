import type { Schedules } from '../schedules/schedules.ts';
import type { MakeSchedules } from '../schedules/schedules-in.ts';
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
export function createQueue<
  TTables extends QueueTables = QueueTables,
  TSchedules extends MakeSchedules | undefined = undefined,
>(
  options: CreateQueueOptions<TTables, TSchedules> = {},
): Queue<OwnColumnsOf<TTables['queueJobs']>, SchedulesOf<TTables, TSchedules>> {
  checkQueueOptions(options);
  return new Queue(options.tables ?? { queueJobs, queueResults, queueWorkers, queuePauses }, options);
}

type SchedulesOf<TTables extends QueueTables, TSchedules> = TSchedules extends MakeSchedules
  ? Schedules<OwnColumnsOf<TTables['queueJobs']>>
  : unknown;
