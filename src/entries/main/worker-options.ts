import type { OwnColumns } from '../../core/schema/own-columns.ts';
import type { PlainWorkerOptions } from '../../core/worker/options.ts';
import type { ScheduleDefinition, TickOptions } from '../../features/schedules/define-schedule.ts';

/** The options of {@link createWorker}. `THandled` are the handlers' kinds, `TKind` those of its `jobs`. */
export interface WorkerOptions<
  TDb,
  TOwn extends OwnColumns = OwnColumns,
  THandled extends string = string,
  TKind extends string = string,
> extends PlainWorkerOptions<TDb, TOwn, THandled, TKind> {
  /**
   * Whether it writes what it does into the table that its queue has for metrics, by one statement a minute.
   * @default true where `createQueue` was given `metrics`
   */
  metrics?: boolean | undefined;
  /**
   * The schedules that this worker declares, each once; its queue must have schedules. It writes them into
   * the table and fires them, beside those of its kinds that `queue.schedules.set` has set. A schedule that
   * no worker declares any more does not fire, and is removed after 7 days.
   * @default none
   */
  schedules?: readonly ScheduleDefinition<TickOptions & TOwn['insert']>[] | undefined;
}
