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
  /** The queues whose jobs have weights: those with groups, with a rate, or with a rate of a kind. */
  readonly weighed: ReadonlySet<string>;
}

/** The group of a job without one, in a queue whose jobs are in groups. */
export const NO_GROUP = '-';

const groupings = new WeakMap<QueueTables, Grouping>();

/** The same tables, with the grouping for statements that end holds or insert jobs. */
export function withGrouping<TTables extends QueueTables>(tables: TTables, grouping: Grouping): TTables {
  const same = { ...tables };
  groupings.set(same, grouping);
  return same;
}

/** Hands the grouping of some tables on to a copy of them. */
export function keepGrouping(known: QueueTables, copy: QueueTables): void {
  const found = groupings.get(known);
  if (found !== undefined) groupings.set(copy, found);
}

/** How the jobs of a queue are grouped; `undefined` where they are in no groups. */
export function groupingOf(
  tables: QueueTables,
  queue: string,
): { readonly tables: LimitTables; readonly serial: Serial | undefined } | undefined {
  const grouping = groupings.get(tables);
  const found = grouping?.queues.get(queue);
  return grouping && found && { tables: grouping.tables, serial: found.serial };
}

/** Whether any queue of these tables has jobs in groups. */
export function hasGroups(tables: QueueTables): boolean {
  return (groupings.get(tables)?.queues.size ?? 0) > 0;
}

/** Whether the jobs of a queue may have weights. */
export function hasWeights(tables: QueueTables, queue: string): boolean {
  return groupings.get(tables)?.weighed.has(queue) ?? false;
}

/** Whether the jobs of any queue of these tables may have weights. */
export function haveWeights(tables: QueueTables): boolean {
  return (groupings.get(tables)?.weighed.size ?? 0) > 0;
}

/** The queues whose jobs are in groups. */
export function groupedQueues(tables: QueueTables): readonly string[] {
  return [...(groupings.get(tables)?.queues.keys() ?? [])];
}

/** The tables of groups; `undefined` where the jobs of no queue are in groups. */
export function groupTables(tables: QueueTables): LimitTables | undefined {
  return hasGroups(tables) ? groupings.get(tables)?.tables : undefined;
}
