import type { AttemptFacts } from '../../job/transition.ts';
import type { ClaimedJob } from '../../queries/claim/claim-jobs.ts';
import type { Around } from '../../queue/enqueue/around.ts';
import type { QueueTables } from '../../schema/create-queue-tables.ts';
import type { Database, Executor } from '../../sql/executor.ts';
import type { Holder } from '../../sql/fence.ts';
import { type BatchHandler, CALL_OF } from './handler.ts';

/** What a batch needs of the attempt of one of its jobs. */
export interface BatchMember {
  readonly job: ClaimedJob;
  readonly holder: Holder;
  readonly facts: AttemptFacts;
  readonly environment: {
    readonly db: Database;
    readonly tables: QueueTables;
    readonly around?: Around | undefined;
    readonly checkTransaction?: (tx: Executor) => Promise<void>;
  };
  readonly signal: AbortSignal;
  /** Why the attempt was told to end, if it was. */
  readonly reason: Error | undefined;
  report(value: unknown): void;
  /** Calls something of the app. */
  inContext<T>(task: () => T): T;
  /** Ends the attempt at once. */
  end(reason: Error): void;
  /** Throws when the attempt is over. */
  checkOpen(): void;
  /** Waits for a value, or until the attempt is ended. */
  until<T>(answer: T | PromiseLike<T>): T | Promise<T>;
}

/** One call of a batch handler, as the attempt of one of its jobs sees it. */
export interface BatchCall {
  /** Returns what the handler's result says about this job; rejects with why it has failed. */
  enter(member: BatchMember, payload: unknown): Promise<unknown>;
  /** Whether `complete(tx)` has ended the job, provided that its transaction commits. */
  hasCompleted(member: BatchMember): boolean;
  noteTold(member: BatchMember): void;
  /** An attempt is over: it waits for its handler no more. */
  leave(member: BatchMember): void;
}

type CallOf = (handler: BatchHandler, members: readonly BatchMember[]) => BatchCall;

/**
 * A call of this handler for these jobs, which begins once all of them have entered.
 * @throws TypeError for a handler that `handleBatch` did not make
 */
export function batchCallOf(handler: BatchHandler, members: readonly BatchMember[]): BatchCall {
  if (!makesCalls(handler)) {
    throw new TypeError(`The batch handler of '${handler.job.kind}' must be what handleBatch returns`);
  }
  return handler[CALL_OF](handler, members);
}

function makesCalls(handler: BatchHandler): handler is BatchHandler & { readonly [CALL_OF]: CallOf } {
  return CALL_OF in handler;
}
