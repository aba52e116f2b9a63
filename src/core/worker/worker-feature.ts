import type { ClaimedJob } from '../queries/claim/claim-jobs.ts';
import type { QueueTables } from '../schema/create-queue-tables.ts';
import type { Transaction } from '../sql/executor.ts';
import type { FeatureTables } from '../sql/feature-tables.ts';
import type { Retries } from '../time/retries.ts';
import type { BackgroundPart } from './base/background.ts';
import type { WorkerEmitter } from './base/events.ts';
import type { Gate } from './begin/gate.ts';
import type { ClaimGroups } from './claim/claim-groups.ts';
import type { Listener } from './presence/listener.ts';
import type { AddedContext } from './run/added-context.ts';
import type { EndedAttempt } from './run/ended-attempt.ts';
import type { Handler } from './run/handler.ts';
import type { ServedQueue } from './served-queues.ts';
import type { Statements } from './statements/statements.ts';

/** What a feature that a queue was made with has to say where its jobs are worked on. */
export interface QueueFeature {
  /** @throws TypeError where the worker cannot serve the queue as it is told to */
  checkServed(queue: string, served: ServedQueue, handlers: readonly Handler<never>[]): void;
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
  forWorker(worker: FeatureContext): WorkerFeature | undefined;
}

/** The worker in which a feature runs. */
export interface FeatureContext {
  readonly statements: Pick<Statements, 'of'>;
  /** With what is known of the server. */
  readonly tables: QueueTables;
  readonly workerId: number;
  readonly servedQueues: ReadonlyMap<string, ServedQueue>;
  readonly kinds: readonly string[];
  readonly events: WorkerEmitter;
  /** There may be something to claim in this queue. */
  readonly wake: (queue: string) => void;
  /** Whether notifications arrive. */
  readonly listener: Pick<Listener, 'listening'>;
  readonly retries: Pick<Retries, 'sleep'>;
  /** Whether it works only until its queues are empty, and so waits for nothing. */
  readonly untilEmpty: boolean;
}

/** A feature that works beside the jobs of a worker, on tables of its own. */
export interface BackgroundFeature {
  readonly tables: FeatureTables;
  /**
   * Called by each start, before anything is sent.
   * @throws what is wrong with what the app has given the feature
   */
  prepare?(): Promise<unknown>;
  /** What it does in a worker, which has prepared it. */
  forWorker(worker: FeatureContext): FeatureParts;
}

/** What a feature does in one worker. */
export interface FeatureParts {
  readonly background: readonly BackgroundPart[];
  /** Workers were asked to look, or notifications may have been missed. */
  look?(): void;
  /** Does once what it would do in time, before a worker that waits for nothing claims. Never rejects. */
  lookOnce?(signal: AbortSignal): Promise<void>;
  /** An attempt has ended, and the database knows. */
  noteEnd?(ended: EndedAttempt): void;
  /** Writes what it has kept, since the worker stops. Never rejects. */
  write?(): Promise<void>;
}

/** A feature that adds to the contexts of handlers. */
export interface ContextFeature extends FeatureTables {
  /** Before the worker registers. @throws QueueError where it cannot work on such a server */
  checkServer(tables: QueueTables): void;
  /** What it adds in a worker, and what it does beside the jobs there. */
  forWorker(worker: FeatureContext): ContextInWorker;
  /** What it adds in `runNext`. */
  forTransaction(): AddedContext;
  /**
   * Makes due what waits for jobs that have ended, in a transaction that has nothing else to do; whether
   * there is something to claim now.
   */
  moveOnIn(tx: Transaction): Promise<boolean>;
}

/** A feature that adds to the contexts of handlers, in one worker. */
export interface ContextInWorker {
  readonly added: AddedContext;
  readonly background: readonly BackgroundPart[];
  /** A job of this worker has left its queue, and that is written. */
  noteEnd(job: ClaimedJob): void;
  /** Makes due what waits for jobs that have ended, where a drain would end; whether there was anything. */
  moveOn(): Promise<boolean>;
}

/** A feature in one worker. It may hold up claims and beginnings, and has work of its own beside them. */
export interface WorkerFeature {
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
  /** Others took this worker for gone. */
  noteGone(): void;
}
