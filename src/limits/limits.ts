import type { ClaimLimits } from '../queries/claim-grouped-jobs.ts';
import type { QueueTables } from '../schema/create-queue-tables.ts';
import { type GroupTables, type LimitTables, type Serial, withGrouping } from '../sql/grouping.ts';
import { withFactsOf } from '../sql/server-facts.ts';
import { isGrouped, type QueueLimits } from './limit-settings.ts';

/** What limits use of their queue. */
export interface QueueOfLimits {
  readonly tables: QueueTables;
  /** Where workers listen; `undefined` when nobody is to be notified. */
  readonly channel: string | undefined;
}

/** How the jobs of a queue with groups are claimed. */
export interface QueueGroups {
  readonly tables: GroupTables;
  readonly limits: Omit<ClaimLimits, 'run'>;
  readonly serial: Serial | undefined;
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

  /** @internal Whether the jobs of a queue are in groups. */
  isGrouped(queue: string): boolean {
    const limits = this.declared.get(queue);
    return limits !== undefined && isGrouped(limits);
  }

  /** @internal `undefined` for a queue whose jobs are in no groups. @param known tables with what is known */
  groupsOf(queue: string, known: QueueTables): QueueGroups | undefined {
    const limits = this.declared.get(queue);
    if (limits === undefined || !isGrouped(limits)) return undefined;
    const { concurrency, rate, serial } = limits.groups ?? {};
    const kindRates = Object.entries(limits.kinds ?? {}).flatMap(([kind, { rate }]) =>
      rate === undefined ? [] : [[kind, rate] as const],
    );
    return {
      tables: withFactsOf(known, this.tables),
      limits: { concurrency, rate, queueRate: limits.rate, kindRates: new Map(kindRates) },
      serial,
    };
  }

  /** @internal The kinds of a queue whose rates are limited; '' for the queue itself. */
  ratedKinds(queue: string): string[] {
    const { rate, kinds = {} } = this.declared.get(queue) ?? {};
    return [...(rate === undefined ? [] : ['']), ...Object.keys(kinds).filter((kind) => kinds[kind]?.rate)];
  }
}
