import { QueueError } from '../../../errors.ts';
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

/** Something that runs inside a function of {@link Around}. */
export interface SurroundedStep<TArgument, TAnswer> {
  /** What the function is called in errors. */
  readonly name: string;
  readonly around: (argument: TArgument, next: () => Promise<TAnswer>) => unknown;
  readonly argument: TArgument;
  readonly step: () => Promise<TAnswer>;
  /** Told when the function throws while the step is still under way; without it the step is waited for. */
  readonly onLeft?: (error: unknown) => void;
}

/**
 * Runs a step inside a function of the app's, and returns what the step does.
 *
 * @throws what the function throws, or else the step
 * @throws QueueError when the function does not call `next`, or twice, however it takes the refusal
 */
export async function goAround<TArgument, TAnswer>(
  surrounded: SurroundedStep<TArgument, TAnswer>,
): Promise<TAnswer> {
  const { name, around, argument, step, onLeft } = surrounded;
  let inner: Promise<TAnswer> | undefined;
  let underWay = false;
  let over = false;
  let twice: QueueError | undefined;
  const next = heard(async (): Promise<TAnswer> => {
    if (inner !== undefined) {
      twice = calledTwice(name);
      throw twice;
    }
    if (over) throw new QueueError(`${name} called next() after it had ended`);
    underWay = true;
    inner = step().finally(() => {
      underWay = false;
    });
    return await inner;
  });
  try {
    await around(argument, next);
  } catch (error) {
    if (onLeft === undefined) await inner?.catch(() => undefined);
    else if (underWay) onLeft(error);
    throw error;
  } finally {
    over = true;
  }
  if (inner === undefined) throw new QueueError(`${name} did not call next()`);
  const done = await inner;
  if (twice !== undefined) throw twice;
  return done;
}

/** `next`, whose rejection is passed on by other ways: one that nothing awaits would end the process. */
export function heard<T>(next: () => Promise<T>): () => Promise<T> {
  return () => {
    const answer = next();
    answer.catch(() => undefined);
    return answer;
  };
}

export function calledTwice(name: string): QueueError {
  return new QueueError(`${name} called next() twice`);
}
