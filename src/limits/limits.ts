import type { QueueTables } from '../schema/create-queue-tables.ts';
import { type GroupTables, type LimitTables, withGrouping } from '../sql/grouping.ts';
import { isGrouped, type QueueLimits } from './limit-settings.ts';

/** What limits use of their queue. */
export interface QueueOfLimits {
  readonly tables: QueueTables;
  /** Where workers listen; `undefined` when nobody is to be notified. */
  readonly channel: string | undefined;
}

/** The limits of a queue: `queue.limits`. */
export class Limits {
  /** @internal */
  readonly tables: GroupTables;
  /** @internal As the code declares them, by queue. */
  readonly declared: ReadonlyMap<string, QueueLimits>;
  readonly #queue: QueueOfLimits;

  /** @internal use {@link limitsIn} */
  constructor(queue: QueueOfLimits, tables: LimitTables, declared: ReadonlyMap<string, QueueLimits>) {
    this.#queue = queue;
    this.tables = { ...queue.tables, ...tables };
    this.declared = declared;
  }

  /** @internal The queue's tables, for statements that must know which queues have groups. */
  get groupedTables(): QueueTables {
    const grouped = [...this.declared].filter(([, limits]) => isGrouped(limits));
    const queues = new Map(
      grouped.map(([queue, { groups }]) => [queue, { serial: groups?.serial }] as const),
    );
    return withGrouping(this.#queue.tables, { tables: this.tables, queues });
  }
}
