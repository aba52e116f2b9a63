import {
  checkDefinition,
  type JobDefinition,
  type OutputInput,
  type Payload,
} from '../../core/job/definition.ts';
import { checkOptions, namesOf } from '../../core/job/known-options.ts';
import { checkDurationMs, checkInteger } from '../../core/job/limits.ts';
import type { Cancel, Fail, Snooze } from '../../core/job/outcome.ts';
import type { Queue } from '../../core/queue/queue.ts';
import type { Database, Transaction } from '../../core/sql/executor.ts';
import { type GatheredOptions, MAKE_GATHERED } from '../../core/worker/begin/gathered.ts';
import type { BatchMember } from '../../core/worker/run/batch-call.ts';
import {
  type BatchHandler,
  CALL_OF,
  type ContextDb,
  type OwnValuesOf,
  type RunningJob,
} from '../../core/worker/run/handler.ts';
import { Batch } from './batch.ts';
import { GatheredBatches } from './gathered-batches.ts';

/** The options of {@link handleBatch}. */
export interface BatchOptions {
  /** How many jobs one call gets at most, 1–1,000. @default 100 */
  maxSize?: number | undefined;
  /**
   * How long the first job of a batch waits for others at most, in milliseconds, 0–60,000. With 0 a batch is
   * what one claim has brought. @default 100
   */
  maxWaitMs?: number | undefined;
}

const OPTIONS = namesOf<BatchOptions>({ maxSize: true, maxWaitMs: true });

/** One job of a batch: what a handler of a single job gets of it. */
export interface BatchJob<TJob extends JobDefinition = JobDefinition, TQueue extends Queue = Queue> {
  /** The output of the definition's schema for the stored payload. */
  readonly payload: Payload<TJob>;
  /** With the type of a queue, also the values of the app's own columns. */
  readonly job: RunningJob & OwnValuesOf<TQueue>;
  /**
   * Aborted when the attempt of this job is over, or must end, while the handler is still running: the job
   * was lost to another worker (`LeaseLostError`) or was cancelled (`JobCancelledError`). Also aborted
   * whenever the signal of the whole batch is.
   */
  readonly signal: AbortSignal;
}

/** What a batch handler gets beside its jobs. */
export interface BatchContext<TJob extends JobDefinition = JobDefinition, TDb = Database> {
  /**
   * Aborted when the worker no longer waits for the batch: its `timeoutMs` has passed (`JobTimeoutError`),
   * the worker stops, or every single job was lost or cancelled.
   */
  readonly signal: AbortSignal;
  /** The worker's database; in `runNext`, the transaction that holds the job. */
  readonly db: TDb;
  /**
   * Ends the jobs of the batch in the handler's own transaction: all of them commit with the handler's
   * writes, or none does. Takes what the handler would return: jobs with `fail(error)`, `snooze(ms)` or
   * `cancel(reason)` are left out of the transaction and settled once the handler has ended. What it returns
   * afterwards is ignored. When the transaction rolls back, no job has ended, and their attempts have failed
   * however the handler returns.
   * @throws LeaseLostError when this worker no longer holds one of them; do not catch it, so that all rolls
   * back
   * @throws InvalidOutputError when the definition's `output` refuses an output
   * @throws QueueError unless there is one entry for each job
   */
  complete(tx: Transaction, ...results: CompleteBatchArguments<TJob>): Promise<void>;
}

/** What a batch handler says about one of its jobs: its output, or that it has none. */
export type BatchEntry<TJob extends JobDefinition> = OutputInput<TJob> | Fail | Snooze | Cancel;

/** The results for a batch's `complete`; optional when the definition has no schema for the output. */
export type CompleteBatchArguments<TJob extends JobDefinition> =
  undefined extends OutputInput<TJob>
    ? [results?: readonly BatchEntry<TJob>[]]
    : [results: readonly BatchEntry<TJob>[]];

/**
 * What a batch handler returns: one entry for each job, in their order; nothing, if all are completed without
 * an output, or if it has called `complete`.
 */
// biome-ignore lint/suspicious/noConfusingVoidType: a handler that returns nothing has the return type void.
export type BatchResult<TJob extends JobDefinition> = readonly BatchEntry<TJob>[] | void;

/**
 * Binds a function that does several jobs together to a kind of job, such as one bulk insert or one call of
 * another system for a hundred jobs. Goes into `handlers` beside what `handle` returns.
 *
 * Jobs of the kind wait in the worker, held by it, until there are `maxSize`, or the first of them has waited
 * `maxWaitMs`. One running batch takes one slot of the queue's `concurrency`.
 *
 * The function runs at least once per job, and each job is settled by itself. It returns nothing (all are
 * completed), or an array in the order of the jobs: an output, `fail(error)`, `snooze(ms)` or
 * `cancel(reason)` for each. A throw fails the attempts of all jobs; a `BatchError` only those that it names.
 * A job whose payload is invalid fails alone, and is not in the batch.
 *
 * ```ts
 * handleBatch(indexPage, { maxSize: 100, maxWaitMs: 500 }, async (jobs, { signal }) => {
 *   await search.bulk(jobs.map(({ payload }) => payload), { signal });
 * });
 * ```
 *
 * Here `db` of the context runs raw SQL only. With the app's own type it comes from {@link handlersFor}.
 *
 * @throws UnknownKindError when `job` is not a definition
 * @throws RangeError | TypeError when an option is outside its range
 */
export function handleBatch<TJob extends JobDefinition, TDb = Database, TQueue extends Queue = Queue>(
  job: TJob,
  options: BatchOptions,
  run: (
    jobs: readonly BatchJob<TJob, TQueue>[],
    context: BatchContext<TJob, ContextDb<TDb>>,
  ) => BatchResult<TJob> | Promise<BatchResult<TJob>>,
): BatchHandler<TDb, OwnValuesOf<TQueue>, TJob['kind']> {
  checkDefinition('handleBatch', job);
  const what = (option: string) => `handleBatch('${job.kind}'): ${option}`;
  const { maxSize = 100, maxWaitMs = 100 } = checkOptions(what('options'), options, OPTIONS);
  const batch = {
    maxSize: checkInteger(what('maxSize'), maxSize, 1, 1_000),
    maxWaitMs: checkDurationMs(what('maxWaitMs'), maxWaitMs, 0, 60_000),
  };
  if (typeof run !== 'function') {
    throw new TypeError(`handleBatch('${job.kind}') takes a function after its options`);
  }
  // This very definition validates the payloads before the function is called.
  const handler = {
    job,
    batch,
    run: run as unknown as BatchHandler<TDb, OwnValuesOf<TQueue>>['run'],
    [CALL_OF]: (handler: BatchHandler, members: readonly BatchMember[]) => new Batch(handler, members),
    [MAKE_GATHERED]: (options: GatheredOptions) => new GatheredBatches(options),
  };
  return handler;
}
