import { UnknownKindError } from '../../../errors.ts';
import { checkDefinition, type JobDefinition, type OutputInput, type Payload } from '../../job/definition.ts';
import type { Cancel, Fail, Snooze } from '../../job/outcome.ts';
import { shown } from '../../job/shown.ts';
import type { ClaimedJob } from '../../queries/claim/claim-jobs.ts';
import type { Queue } from '../../queue/queue.ts';
import type { AddedBy } from '../../queue/queue-workflows.ts';
import type { Database, Transaction } from '../../sql/executor.ts';

/** What a handler is told about its job beside the payload. */
export type JobInfo = Omit<ClaimedJob, 'payload' | 'cancelReason' | 'begun' | 'beginTime'>;

/** The values of the app's own columns; `unknown` without such columns. */
export type OwnValuesOf<TQueue extends Queue> = TQueue extends Queue<infer TOwn> ? TOwn['select'] : never;

/** A handler's job. */
export interface RunningJob extends JobInfo {
  /**
   * Records how far the handler is: any JSON value of at most 4,096 bytes. `queue.find` and `queue.list`
   * return the last one while the job is live; the result does not keep it.
   *
   * Call it as often as you like. The first value is written at once, and later ones at most four times a
   * second, together with those of the queue's other jobs in this worker. The last one is always written if
   * the attempt still runs when its turn comes: what is reported just before it ends may be lost, also where
   * the job is to run again. It never throws or waits: a value that cannot be stored, or a database that does
   * not answer, is an `error` event of the worker. In `runNext` nothing is written: it would not be visible
   * before the transaction ends.
   */
  progress(value: unknown): void;
}

/** What a handler gets; of a queue with workflows also `step`, where the type of the queue is named. */
export type HandlerContext<
  TJob extends JobDefinition = JobDefinition,
  TDb = Database,
  TQueue extends Queue = Queue,
> = PlainContext<TJob, TDb, TQueue> & AddedBy<TQueue, TDb>;

/** What every handler gets. */
export interface PlainContext<
  TJob extends JobDefinition = JobDefinition,
  TDb = Database,
  TQueue extends Queue = Queue,
> {
  /** The output of the definition's schema for the stored payload. */
  readonly payload: Payload<TJob>;
  /** With the type of a queue, also the values of the app's own columns. */
  readonly job: RunningJob & OwnValuesOf<TQueue>;
  /**
   * Aborted when the attempt is over although the handler is still running: its `timeoutMs` has passed
   * (`JobTimeoutError`), the job was lost to another worker (`LeaseLostError`), it was cancelled
   * (`JobCancelledError`), or the worker stops. Pass it to everything that takes time.
   */
  readonly signal: AbortSignal;
  /** The worker's database; in `runNext`, the transaction that holds the job. */
  readonly db: TDb;
  /**
   * Ends the job in the handler's own transaction: its end commits with the handler's writes, or neither
   * does. What the handler returns afterwards is ignored. When the transaction rolls back, the job has not
   * ended, and the attempt has failed however the handler returns.
   * @throws LeaseLostError when this worker no longer holds the job; do not catch it, so that all rolls back
   * @throws InvalidOutputError when the definition's `output` refuses the output
   */
  complete(tx: Transaction, ...output: CompleteArguments<TJob>): Promise<void>;
}

/**
 * The database of a handler that was not told its type. It runs raw SQL and begins transactions; what else a
 * Drizzle database has is named here, so that an error of the compiler says how to get it.
 */
export interface UntypedDatabase extends Database {
  readonly select: { readonly 'The type of db is not known here: use handlersFor<typeof db>()': never };
  readonly insert: { readonly 'The type of db is not known here: use handlersFor<typeof db>()': never };
  readonly update: { readonly 'The type of db is not known here: use handlersFor<typeof db>()': never };
  readonly delete: { readonly 'The type of db is not known here: use handlersFor<typeof db>()': never };
  readonly query: { readonly 'The type of db is not known here: use handlersFor<typeof db>()': never };
}

/** What `db` is for a handler: the app's own type, or one that says how to name it. */
export type ContextDb<TDb> = Database extends TDb ? UntypedDatabase : TDb;

/** The output for `complete`; optional when the definition has no schema for it. */
export type CompleteArguments<TJob extends JobDefinition> =
  undefined extends OutputInput<TJob> ? [output?: OutputInput<TJob>] : [output: OutputInput<TJob>];

/**
 * What a handler returns: its output, `snooze(ms)`, `cancel(reason)` or `fail(error)`; nothing, if it has
 * called `complete` or its definition has no output schema.
 */
// biome-ignore lint/suspicious/noConfusingVoidType: a handler that returns nothing has the return type void.
export type HandlerResult<TJob extends JobDefinition> = OutputInput<TJob> | Snooze | Cancel | Fail | void;

/** The common type of a Drizzle database and its transactions, for handlers that may get either. */
export type DbOrTx<TDb extends Database> = Pick<TDb, keyof TDb & keyof TransactionOf<TDb>>;

/** The transaction type of a Drizzle database. */
export type TransactionOf<TDb extends Database> = Parameters<Parameters<TDb['transaction']>[0]>[0];

/** A context without its types; the definition has validated the values. */
export interface UntypedContext<TDb = Database, TOwn = unknown> {
  readonly payload: unknown;
  readonly job: RunningJob & TOwn;
  readonly signal: AbortSignal;
  readonly db: TDb;
  complete(tx: Transaction, output?: unknown): Promise<void>;
}

/** One job of a batch without its types. */
export type UntypedBatchJob<TOwn = unknown> = Pick<UntypedContext<never, TOwn>, 'payload' | 'job' | 'signal'>;

/** The context of a batch without its types. */
export interface UntypedBatchContext<TDb = Database> {
  readonly signal: AbortSignal;
  readonly db: TDb;
  complete(tx: Transaction, results?: readonly unknown[]): Promise<void>;
}

/** A kind of job and the function that does one. */
export interface JobHandler<in TDb = Database, in TOwn = unknown, out TKind extends string = string> {
  readonly job: JobDefinition<TKind>;
  readonly batch?: undefined;
  readonly run: (context: UntypedContext<TDb, TOwn>) => unknown;
}

/** A kind of job and the function that does several together. */
export interface BatchHandler<in TDb = Database, in TOwn = unknown, out TKind extends string = string> {
  readonly job: JobDefinition<TKind>;
  /** Until when jobs gather for one call. */
  readonly batch: { readonly maxSize: number; readonly maxWaitMs: number };
  readonly run: (jobs: readonly UntypedBatchJob<TOwn>[], context: UntypedBatchContext<TDb>) => unknown;
}

/**
 * What `handle` and `handleBatch` return: a kind of job and its function, for workers with a `TDb` whose jobs
 * have the own columns `TOwn`.
 */
export type Handler<TDb = Database, TOwn = unknown, TKind extends string = string> =
  | JobHandler<TDb, TOwn, TKind>
  | BatchHandler<TDb, TOwn, TKind>;

/**
 * Binds a function to a kind of job, for `createWorker`, `runNext` and `drain`.
 *
 * The function runs at least once per job. It returns the job's output, `snooze(ms)`, `cancel(reason)` or
 * `fail(error)`. A throw fails the attempt; a `NonRetryableError` discards the job.
 *
 * Here `db` of the context runs raw SQL only. With the app's own type it comes from {@link handlersFor}.
 *
 * @throws UnknownKindError when `job` is not a definition
 */
export function handle<TJob extends JobDefinition, TDb = Database, TQueue extends Queue = Queue>(
  job: TJob,
  run: (
    context: HandlerContext<TJob, ContextDb<TDb>, TQueue>,
  ) => HandlerResult<TJob> | Promise<HandlerResult<TJob>>,
): JobHandler<TDb, OwnValuesOf<TQueue>, TJob['kind']> {
  checkDefinition('handle', job);
  if (typeof run !== 'function') throw new TypeError(`handle('${job.kind}') takes a function`);
  // This very definition validates the payload before the function is called.
  return { job, run: run as unknown as JobHandler<TDb, OwnValuesOf<TQueue>>['run'] };
}

/** A batch handler brings what its calls are made of, so that the core does not know it. */
export const CALL_OF: unique symbol = Symbol.for('drizzle-queue: call of a batch');

/**
 * @throws UnknownKindError when there is no handler, or two for one kind
 * @throws TypeError for what neither `handle` nor `handleBatch` has made
 */
export function handlersByKind<TDb, TOwn>(
  caller: string,
  handlers: readonly Handler<TDb, TOwn>[],
): ReadonlyMap<string, Handler<TDb, TOwn>> {
  const what = `${caller}: handlers`;
  if (!Array.isArray(handlers)) throw new TypeError(`${what} must be an array; got ${shown(handlers)}`);
  if (handlers.length === 0)
    throw new UnknownKindError(`${what} must hold at least one: handle(job, function)`);
  const byKind = new Map<string, Handler<TDb, TOwn>>();
  for (const handler of handlers as readonly Handler<TDb, TOwn>[]) {
    const isMade = handler?.batch === undefined || CALL_OF in handler;
    if (typeof handler?.run !== 'function' || !isMade) {
      throw new TypeError(`${what} must hold what handle and handleBatch return; got ${got(handler)}`);
    }
    checkDefinition(what, handler.job);
    const { kind } = handler.job;
    if (byKind.has(kind))
      throw new UnknownKindError(`${caller}: there are two handlers for the kind '${kind}'`);
    byKind.set(kind, handler);
  }
  return byKind;
}

/** A definition without its function is the likely mistake. */
function got(given: unknown): string {
  const kind: unknown = Reflect.get(Object(given), 'kind');
  return typeof kind === 'string' ? `the definition of '${kind}': write handle(job, function)` : shown(given);
}
