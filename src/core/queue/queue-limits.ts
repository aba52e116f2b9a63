import type { QueueTables } from '../schema/create-queue-tables.ts';
import type { LimitsToCheck } from './check/check-queue.ts';

export interface QueueOfLimits {
  readonly tables: QueueTables;
  /** Where workers listen; `undefined` to send no notifications. */
  readonly channel: string | undefined;
}

/** What a queue asks of the limits that it was made with. */
export interface QueueLimiting extends LimitsToCheck {
  /** The queue's tables, for statements that must know which of its queues have groups, or rates. */
  readonly statementTables: QueueTables;
}

export type MakeQueueLimiting<TLimits extends QueueLimiting = QueueLimiting> = (
  queue: QueueOfLimits,
) => TLimits;
