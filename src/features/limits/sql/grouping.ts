import type { QueueTables } from '../../../core/schema/create-queue-tables.ts';
import type { ControlTables } from '../../control/index.ts';

/**
 * What the jobs of a group that run one after the other wait for.
 * - `attempt`: the end of the attempt before. A retry goes behind them.
 * - `end`: the end of the job before. A job that is retried keeps its place, and those behind it wait.
 * - `success`: its completion. Behind one that was discarded they wait until `queue.limits.unblock`, or until
 *   it was redriven.
 */
export type Serial = 'attempt' | 'end' | 'success';

/** The tables of limits. */
export type LimitTables = Pick<
  ControlTables,
  'queueLimits' | 'queueUsage' | 'queueGroups' | 'queueHolds' | 'queueNotes'
>;

/** The tables that statements about groups use. */
export type GroupTables = QueueTables & LimitTables;

/** Which queues' jobs are in groups, and how. */
export interface Grouping {
  readonly tables: LimitTables;
  /** By queue; `serial` is `undefined` where jobs of a group may run at once. */
  readonly queues: ReadonlyMap<string, { readonly serial: Serial | undefined }>;
  /** The queues whose jobs have costs: those with groups, with a rate, or with a rate of a kind. */
  readonly withCosts: ReadonlySet<string>;
}
