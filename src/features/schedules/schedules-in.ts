import { is } from 'drizzle-orm';
import { PgTable } from 'drizzle-orm/pg-core';
import { shown } from '../../core/job/shown.ts';
import type { QueueOfSchedules } from '../../core/queue/queue-features.ts';
import { checkSameSet } from '../../core/schema/same-set.ts';
import type { ControlTables } from '../control/index.ts';
import { Schedules } from './schedules.ts';

/** Makes the schedules of a queue: what {@link schedulesIn} returns. */
export type MakeSchedules = (queue: QueueOfSchedules) => Schedules;

/**
 * Gives a queue schedules, which are rows of this table. A queue without it loads none of their code.
 *
 * ```ts
 * import { queueSchedules } from 'drizzle-queue/schema/control';
 * export const queue = createQueue({ schedules: schedulesIn(queueSchedules) });
 * ```
 *
 * @param queueSchedules the table that the app's schema exports, from `drizzle-queue/schema/control` or
 * `createControlTables`
 * @throws TypeError when it is not a table; createQueue throws one where it is not of its own set
 */
export function schedulesIn(queueSchedules: ControlTables['queueSchedules']): MakeSchedules {
  if (!is(queueSchedules, PgTable)) {
    throw new TypeError(
      "schedulesIn takes the table queueSchedules of 'drizzle-queue/schema/control'; " +
        `got ${shown(queueSchedules)}`,
    );
  }
  return (queue) => {
    checkSameSet('schedulesIn', queue.tables.queueJobs, { queueSchedules }, 'createControlTables');
    return new Schedules(queue, queueSchedules);
  };
}
