import type { ClaimedJob } from '../../queries/claim/claim-jobs.ts';
import type { Database } from '../../sql/executor.ts';
import type { LimitedEnqueueResult } from './enqueue-jobs.ts';

/** A job that is about to be enqueued, as {@link Around} sees it. */
export interface JobToEnqueue {
  readonly kind: string;
  readonly queue: string;
  /** `undefined` in `enqueueFrom`, where each row may have its own. */
  readonly priority: number | undefined;
  readonly uniqueKey: string | null;
  /** As given to the enqueue. Already checked and serialized: changing it here has no effect. */
  readonly payload: unknown;
  /** The job's own, to read and to add to until `next` is called: a trace id, a tenant. */
  readonly metadata: Record<string, unknown>;
}

/** What {@link Around} is told about an attempt: part of its handler's context. */
export interface AttemptContext {
  /** The payload, as the definition's schema made it from what is stored. */
  readonly payload: unknown;
  readonly job: Omit<ClaimedJob, 'payload' | 'cancelReason' | 'begun' | 'beginTime'>;
  /** Aborted when the attempt is over although its handler is not. */
  readonly signal: AbortSignal;
  readonly db: Database;
}

/** What {@link Around} is told about the attempts of a batch handler. */
export interface BatchAttemptContext {
  /** Never empty. The signal of each is its job's own. */
  readonly jobs: readonly Omit<AttemptContext, 'db'>[];
  /** Aborted when the attempts of all these jobs are over although their handler is not. */
  readonly signal: AbortSignal;
  readonly db: Database;
}

/**
 * Functions that every enqueue and every attempt of a queue run inside, for tracing, `AsyncLocalStorage` and
 * tenants. Each calls `next` once and awaits it. Its return value is ignored, and an error with which
 * `next()` rejects passes on even if it is caught here. An error of its own replaces the result.
 */
export interface Around {
  /**
   * Around each `enqueue` and `enqueueMany` (all jobs of the call; not called for none); `next()` returns
   * what became of each job, in their order. Called after the jobs are checked, so not for refused ones. An
   * error thrown here is the enqueue's.
   *
   * Around `enqueueFrom` it gets one job that stands for all rows, without a payload or a key; its metadata
   * goes to all of them, and `next()` returns `undefined`. Around `enqueueQuery` too; there nothing is sent
   * yet when `next()` resolves, and it must be called before anything is awaited, since the query is returned
   * at once. What it throws or rejects with after that is lost.
   */
  readonly enqueue?:
    | ((
        jobs: readonly JobToEnqueue[],
        next: () => Promise<readonly LimitedEnqueueResult[] | undefined>,
      ) => unknown)
    | undefined;
  /**
   * Around each handler, in workers, `drain` and `runNext`; `next()` returns what the handler returns, or a
   * value for which `isWait` is true when the handler is left behind because it waits for something. Called
   * once the payload has been validated, and before the output is. An error thrown here fails the attempt and
   * aborts the signal of a handler that still runs. The attempt's `timeoutMs` covers both: then, and when the
   * attempt ends in another way before its handler, `next()` rejects with the reason, and calls no handler.
   */
  readonly run?: ((context: AttemptContext, next: () => Promise<unknown>) => unknown) | undefined;
  /**
   * The same around each call of a batch handler, which is one attempt of each of its jobs; `run` is not
   * called for these. A queue with `run` needs it where a worker has batch handlers: that these run outside
   * of what `run` provides must be said (`runBatch: (_, next) => next()`).
   */
  readonly runBatch?: ((context: BatchAttemptContext, next: () => Promise<unknown>) => unknown) | undefined;
}
