import { checkObject } from '../../core/job/limits.ts';
import type { QueueOfLimits } from '../../core/queue/queue-limits.ts';
import { checkSameSet } from '../../core/schema/same-set.ts';
import { checkTables } from '../../core/sql/feature-tables.ts';
import { CONTROL_ENTRY } from '../control/control-entry.ts';
import { Limits } from './limits.ts';
import { NOT_DECLARED } from './not-declared.ts';
import { checkQueueLimits, type QueueLimits } from './settings/limit-settings.ts';
import type { LimitTables } from './sql/limit-tables.ts';
import { UndeclaredLimits } from './undeclared-limits.ts';

/** Makes the limits of a queue: what {@link limitsIn} returns. */
export type MakeLimits = (queue: QueueOfLimits) => Limits;

/**
 * Gives queues limits: how many of their jobs run at once, how fast they start, and whose turn it is, in all
 * processes together. A queue without it loads none of their code.
 *
 * ```ts
 * import * as control from 'drizzle-queue/schema/control';
 * export const queue = createQueue({
 *   limits: limitsIn(control, {
 *     exports: { concurrency: 50, groups: { concurrency: 2 } },
 *     ledger: { groups: { serial: 'end' } },
 *   }),
 * });
 * ```
 *
 * @param tables those that the app's schema exports, from `drizzle-queue/schema/control` or
 * `createControlTables`
 * @param byQueue the limits, by the name of the queue; `queue.limits.set` changes them at run time
 * @throws RangeError | TypeError naming the table or the setting that is wrong; createQueue throws a
 * TypeError where the tables are not of its own set
 */
export function limitsIn(tables: LimitTables, byQueue: Readonly<Record<string, QueueLimits>>): MakeLimits {
  checkObject('limitsIn: tables', tables);
  const { queueLimits, queueUsage, queueGroups, queueHolds, queueNotes } = tables;
  const given = { queueLimits, queueUsage, queueGroups, queueHolds, queueNotes };
  checkTables('limitsIn', CONTROL_ENTRY, given);
  checkObject('limitsIn: limits', byQueue);
  const limits = new Map(
    Object.entries(byQueue).map(([queue, settings]) => [queue, checkQueueLimits(queue, settings)]),
  );
  const tellsGroups: unknown = Reflect.get(byQueue, NOT_DECLARED);
  return (queue) => {
    checkSameSet('limitsIn', queue.tables.queueJobs, given, 'createControlTables');
    if (tellsGroups === undefined) return new Limits(queue, given, limits);
    return new UndeclaredLimits(queue, given, tellsGroups === true);
  };
}
