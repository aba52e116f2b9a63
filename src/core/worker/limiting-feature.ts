import type { QueueTables } from '../schema/create-queue-tables.ts';
import type { FeatureTables } from '../sql/feature-tables.ts';
import type { BackgroundPart } from './base/background.ts';
import type { Gate } from './begin/gate.ts';
import type { ClaimGroups } from './claim/claim-groups.ts';
import type { HostWorker } from './host-worker.ts';
import type { Handler } from './run/handler.ts';
import type { ServedQueue } from './served-queues.ts';

/** What a feature that a queue was made with has to say where its jobs are worked on. */
export interface LimitingFeature {
  /** @throws TypeError where the worker cannot serve the queue as it is told to */
  checkServed(caller: string, queue: string, served: ServedQueue, handlers: readonly Handler<never>[]): void;
  /** @throws QueueError for a queue whose jobs only a worker can run */
  checkRunNext(queue: string): void;
  /** The tables that a worker of these queues needs beside those of the queue; `undefined`: none. */
  tablesFor(queues: readonly string[]): FeatureTables | undefined;
  /**
   * @param tables with what is known of the server
   * @throws QueueError for queues that it cannot serve on this server
   */
  checkServer(queues: readonly string[], tables: QueueTables): void;
  /** What runs in a worker; `undefined` where none of its queues has the feature. */
  forWorker(worker: HostWorker): LimitingInWorker | undefined;
}

/** A feature in one worker. It may hold up claims and beginnings, and has work of its own beside them. */
export interface LimitingInWorker {
  readonly background: readonly BackgroundPart[];
  /** Fulfilled when the worker may claim. */
  readonly ready: Promise<unknown>;
  /** Fulfilled when a queue that looks empty is empty. */
  readonly settled: Promise<unknown> | undefined;
  /** Whether a job of this queue may begin; `undefined`: as soon as a slot is free. */
  gateOf(queue: string): Gate | undefined;
  /** How its jobs are claimed where they are in groups. */
  groupsOf(queue: string): ClaimGroups | undefined;
  /** Workers were asked to look, or may have been. */
  look(): void;
  /** Other workers are gone, or the database answers again. */
  askSoon(): void;
  /** A notification came that names no queue of this worker. */
  hear(payload: string): void;
  /** Others took this worker for gone. */
  noteGone(): void;
}
