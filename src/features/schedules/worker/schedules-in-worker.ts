import { checkObject } from '../../../core/job/limits.ts';
import { shown } from '../../../core/job/shown.ts';
import { contextOf, inContext } from '../../../core/sql/statement-context.ts';
import type { BackgroundFeature } from '../../../core/worker/background-feature.ts';
import { CONTROL_ENTRY } from '../../control/control-entry.ts';
import type { ScheduleDefinition } from '../define-schedule.ts';
import type { Schedules } from '../schedules.ts';
import type { NewSchedule } from '../sql/stored-schedule.ts';
import { Firing } from './firing.ts';

/**
 * Checks the schedules that a worker is to declare.
 *
 * @throws TypeError when its queue has none, or two have one name
 */
export function checkDeclared(
  caller: string,
  schedules: Schedules | undefined,
  declared: readonly ScheduleDefinition[],
): void {
  if (!Array.isArray(declared)) {
    throw new TypeError(`${caller}: schedules must be an array, got ${shown(declared)}`);
  }
  if (declared.length > 0 && schedules === undefined) {
    throw new TypeError(
      `${caller}: its queue has no schedules. Write ` +
        'createQueue({ schedules: schedulesIn(queueSchedules) }), ' +
        "with the table of 'drizzle-queue/schema/control'",
    );
  }
  const names = new Set<string>();
  for (const schedule of declared as readonly ScheduleDefinition[]) {
    const { name } = checkObject(`${caller}: a schedule`, schedule);
    if (names.has(name)) throw new TypeError(`${caller}: schedules has '${name}' twice`);
    names.add(name);
  }
}

/** What a worker does for schedules: it writes those that it declares, and fires what is due of its kinds. */
export function schedulesInWorker(
  caller: string,
  schedules: Schedules,
  declared: readonly ScheduleDefinition[],
): BackgroundFeature {
  let stored: readonly NewSchedule[] = [];
  return {
    tables: {
      tables: { queueSchedules: schedules.tables.queueSchedules },
      entry: CONTROL_ENTRY,
      // A tick enqueues a job.
      ofJobs: ['insert'],
    },
    async prepare() {
      stored = await Promise.all(declared.map(async (schedule) => await schedules.toStore(caller, schedule)));
    },
    forWorker({ statements, tables, workerId, kinds, listener, events, retries, until }) {
      const firing = new Firing({
        db: statements.of('schedules'),
        tables: inContext(schedules.tables, contextOf(tables)),
        channel: schedules.channel,
        workerId,
        declared: stored,
        kinds,
        listener,
        events,
        retries,
      });
      return {
        // A worker that ends when its queues are empty waits for no tick: it looks once.
        background: until === 'empty' ? [] : [firing],
        look: () => firing.wake(),
        lookOnce: (signal) => firing.tryLook(signal),
      };
    },
  };
}
