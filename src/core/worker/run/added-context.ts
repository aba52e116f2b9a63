import type { ClaimedJob } from '../../queries/claim/claim-jobs.ts';
import type { QueueTables } from '../../schema/create-queue-tables.ts';
import type { Database } from '../../sql/executor.ts';
import type { Holder } from '../../sql/fence.ts';

/** The attempt whose handler's context a feature adds to. */
export interface AttemptAddedTo {
  readonly job: ClaimedJob;
  readonly holder: Holder;
  readonly environment: { readonly db: Database; readonly tables: QueueTables };
  /** Of the handler: aborted when the attempt is over although the handler is not. */
  readonly signal: AbortSignal;
  /** Whether the handler has called `complete(tx)`, whose transaction may not have committed. */
  readonly completeRan: boolean;
  /** By the database's clock: the time of its claim, and what has passed since. */
  readonly databaseNowMs: number;
  /** In how many milliseconds the `timeoutMs` of its job ends it; `undefined`: it has none. */
  readonly untilTimeoutMs: number | undefined;
  /** @throws why the attempt was ended, or LeaseLostError when its end is decided */
  checkOpen(): void;
  /** Ends the attempt at once: it has failed. */
  end(reason: Error): void;
  /**
   * Ends the attempt: its job is due again after this many milliseconds, or when something unparks it
   * (`null`).
   */
  wait(delayMs: number | null): void;
  /**
   * Asks, once the handler has returned or thrown, for what it has left under way: the attempt ends after
   * that. `undefined`: nothing.
   */
  endsAfter(underWay: () => Promise<void> | undefined): void;
  /** Calls once where the attempt ends before its handler, with why. */
  onLeft(told: (reason: Error) => void): void;
  /** Something is recorded that no later attempt does again: from now on this one counts as the first. */
  noteProgress(): void;
  /** Calls something of the app: nothing that it sets in its async context reaches others. */
  inContext<T>(task: () => T): T;
}

/** What a feature adds to the contexts of handlers: one property. Those of batch handlers have it not. */
export interface AddedContext {
  readonly name: string;
  /**
   * Whether the job must not begin yet. Asked only of one that was claimed although it waits for others: at
   * its deadline, or by hand.
   */
  isBlocked?(attempt: AttemptAddedTo): Promise<boolean>;
  /** Makes its value for one attempt, when the handler first looks at it. */
  of(attempt: AttemptAddedTo): unknown;
}
