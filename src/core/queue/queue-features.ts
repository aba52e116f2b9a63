import type { PgTable } from 'drizzle-orm/pg-core';
import type { NewJob } from '../job/new-job.ts';
import type { QueueTables } from '../schema/create-queue-tables.ts';
import type { Executor } from '../sql/executor.ts';
import type { FeatureToCheck } from './check/feature-to-check.ts';
import type { Around } from './enqueue/around.ts';
import type { KeyRules } from './enqueue/key-rules.ts';
import type { MakeQueueLimiting } from './queue-limits.ts';
import type { MakeQueueWorkflows } from './queue-workflows.ts';
import type { ReportedRates } from './stats/reported-rates.ts';

export interface QueueOfSchedules {
  readonly tables: QueueTables;
  /** Where workers listen; `undefined` to send no notifications. */
  readonly channel: string | undefined;
  readonly maxPayloadBytes: number;
  /** Enqueues one job, given its payload as the app knows it, as every enqueue does. */
  enqueue(
    db: Executor,
    job: NewJob,
    payload: unknown,
  ): Promise<{ readonly id: number | undefined; readonly duplicate: boolean }>;
}

export type MakeQueueSchedules = (queue: QueueOfSchedules) => object;

export interface QueueKeys extends KeyRules {
  /** The table of the keys that outlive a job; `undefined` where the queue has none. */
  readonly table: PgTable | undefined;
}

/**
 * What a queue is made of beside its tables: its settings, and the features that it is to have. `TQueue` is
 * the queue that is made.
 */
export interface QueueParts<TQueue = unknown> {
  readonly around?: Around | undefined;
  /** @default true */
  readonly wakeUps?: boolean | undefined;
  /** @default DEFAULT_MAX_PAYLOAD_BYTES */
  readonly maxPayloadBytes?: number | undefined;
  /** @default false */
  readonly requireTransaction?: boolean | undefined;
  readonly limits?: MakeQueueLimiting | undefined;
  readonly schedules?: MakeQueueSchedules | undefined;
  readonly workflows?: MakeQueueWorkflows | undefined;
  readonly keys?: QueueKeys | undefined;
  readonly metrics?: ReportedRates | undefined;
  /** The features whose tables `Queue.check` looks for. @default none */
  readonly toCheck?: ((queue: TQueue) => Promise<readonly FeatureToCheck[]>) | undefined;
}
