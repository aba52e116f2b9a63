import type { JobDefinition } from '../job/definition.ts';
import { checkOptions, namesOf } from '../job/known-options.ts';
import { checkBoolean, checkDurationMs, checkText, MAX_DELAY_MS, MAX_NAME_BYTES } from '../job/limits.ts';
import { shown } from '../job/shown.ts';
import type { Around } from '../queue/enqueue/around.ts';
import type { Queue } from '../queue/queue.ts';
import { processName } from '../runtime.ts';
import type { OwnColumns } from '../schema/own-columns.ts';
import type { Database } from '../sql/executor.ts';
import type { BackgroundFeature } from './background-feature.ts';
import type { ContextFeature } from './context-feature.ts';
import { checkEveryKind } from './every-kind.ts';
import type { LimitingFeature } from './limiting-feature.ts';
import { checkLogger, type Logger } from './log/logger.ts';
import { type Handler, handlersByKind } from './run/handler.ts';
import { type QueueSettings, type ServedQueue, servedQueues } from './served-queues.ts';

/** The options of every function that runs jobs. */
export interface RunOptions<TDb, TOwn extends OwnColumns = OwnColumns, THandled extends string = string> {
  /** The queue whose tables hold the jobs, from `createQueue`. */
  queue: Queue<TOwn>;
  /** One handler per kind. Jobs of other kinds are left alone, so a rolling deploy fails no unknown jobs. */
  handlers: readonly Handler<TDb, TOwn['select'], THandled>[];
}

/** The options of a worker, but for those that features read: see {@link createWorker}. */
export interface PlainWorkerOptions<
  TDb,
  TOwn extends OwnColumns = OwnColumns,
  THandled extends string = string,
  TKind extends string = string,
> extends RunOptions<TDb, TOwn, THandled> {
  /**
   * Kinds that must have a handler: one without does not compile, and is a TypeError.
   * @default none
   */
  jobs?: readonly JobDefinition<TKind>[] | undefined;
  /** The queues to serve, by name; at most 10,000. @default every queue that a handler's job names */
  queues?: Readonly<Record<string, QueueSettings>> | undefined;
  /** How many jobs of a queue run at once in this process, unless `queues` says, 1–10,000. @default 10 */
  concurrency?: number | undefined;
  /**
   * Whether to listen for notifications of jobs on one connection beside the app's pool, where the driver
   * can. Jobs then start within milliseconds; without notifications the worker polls. The connection also
   * carries the worker's session, which shows others its death within seconds. Set it to `false` behind
   * PgBouncer in transaction mode.
   * @default true
   */
  listen?: boolean | undefined;
  /**
   * How often a worker that does not listen asks its idle queues for due jobs, in milliseconds, 5–60,000,
   * varied by up to a quarter at random. A worker that listens asks once a second, or at this interval if it
   * is longer. Just after a job it asks more often, and while claims come back full it does not wait.
   * @default 75
   */
  pollIntervalMs?: number | undefined;
  /**
   * How long `stop` lets handlers finish, in milliseconds, 0–3,600,000. Then their signals are aborted, and
   * one second later their jobs are given back without spending an attempt.
   * @default 25_000 (within the 30 s that most platforms give)
   */
  shutdownTimeoutMs?: number | undefined;
  /** How long results are kept, in milliseconds; `Infinity`: forever. @default 604_800_000 (7 days) */
  retentionMs?: number | undefined;
  /**
   * How long another worker whose session has ended must not be seen before it is declared gone and its jobs
   * are due again, in milliseconds, 1,000–60,000. To notice that the session ended takes up to 1.5 s more.
   * Shorter recovers sooner from a crash; longer tolerates longer network failures.
   * @default 2_500
   */
  reconnectMs?: number | undefined;
  /**
   * How long another worker *without* a session (it does not listen, or its driver cannot) must not be seen
   * before it is declared gone, in milliseconds, 15,000–3,600,000. Workers show themselves every 5 seconds.
   * Shorter recovers sooner from a crash, but also mistakes a blocked event loop for one sooner.
   * @default 30_000
   */
  silentMs?: number | undefined;
  /**
   * How long another worker that still holds its session must not be seen before it is declared gone, in
   * milliseconds, 15,000–3,600,000: its process hangs. A shorter time recovers sooner from a process that
   * hangs forever; a longer one lets handlers block the event loop for longer.
   * @default 60_000
   */
  frozenMs?: number | undefined;
  /** The worker's name in `queue_workers`. @default 'host:pid' */
  name?: string | undefined;
  /**
   * A logger for all that the worker does (see `logWorker`), or `false` for silence; errors of the worker
   * without a listener are printed all the same.
   * @default one line each on stderr: its start, each discarded job and why, handlers that a stop waits for
   */
  log?: Logger | false | undefined;
}

export interface WorkerSettings {
  readonly servedQueues: ReadonlyMap<string, ServedQueue>;
  readonly listen: boolean;
  readonly pollIntervalMs: number;
  readonly shutdownTimeoutMs: number;
  readonly retentionMs: number;
  readonly reconnectMs: number;
  readonly silentMs: number;
  readonly frozenMs: number;
  readonly name: string;
  readonly log: Logger | false | undefined;
  readonly around: Around | undefined;
  readonly limits: LimitingFeature | undefined;
  /** What adds to the contexts of handlers. */
  readonly context: ContextFeature | undefined;
  readonly features: readonly BackgroundFeature[];
}

/** The features that a worker is given, and the options of the app that they read. */
export interface WorkerAdditions {
  readonly options: ReadonlySet<string>;
  /**
   * The features of one worker. The core has checked its own options.
   * @throws RangeError | TypeError naming the option that is wrong
   */
  of(caller: string, options: PlainWorkerOptions<Database>): readonly BackgroundFeature[];
}

const NO_ADDITIONS: WorkerAdditions = { options: new Set(), of: () => [] };

const OPTIONS = namesOf<PlainWorkerOptions<unknown>>({
  queue: true,
  handlers: true,
  jobs: true,
  queues: true,
  concurrency: true,
  listen: true,
  pollIntervalMs: true,
  shutdownTimeoutMs: true,
  retentionMs: true,
  reconnectMs: true,
  silentMs: true,
  frozenMs: true,
  name: true,
  log: true,
});

const WEEK_MS = 7 * 24 * 3_600_000;

/**
 * Checks the options of every function that runs jobs, for callers without TypeScript.
 * @throws TypeError | UnknownKindError
 */
export function checkRunOptions<TDb>(
  caller: string,
  options: RunOptions<TDb>,
  known: ReadonlySet<string>,
): ReadonlyMap<string, Handler<TDb>> {
  checkOptions(`${caller}: options`, options, known);
  if (typeof options.queue?.tables !== 'object') {
    throw new TypeError(`${caller}: queue must be what createQueue() returns; got ${shown(options.queue)}`);
  }
  const handlers = handlersByKind(caller, options.handlers);
  const { run, runBatch } = options.queue.around ?? {};
  for (const { job, batch } of handlers.values()) {
    if (batch === undefined || run === undefined || runBatch !== undefined) continue;
    throw new TypeError(
      `${caller}: the batch handler of '${job.kind}' would run outside of the queue's around.run, ` +
        'which is for single jobs; give createQueue an around.runBatch too',
    );
  }
  return handlers;
}

/** @throws RangeError | TypeError | UnknownKindError naming the option that is wrong */
export function workerSettings(
  caller: string,
  options: PlainWorkerOptions<Database>,
  additions: WorkerAdditions = NO_ADDITIONS,
): WorkerSettings {
  const what = (setting: string) => `${caller}: ${setting}`;
  const known = new Set([...OPTIONS, ...additions.options]);
  const handlers = checkRunOptions(caller, options, known);
  checkEveryKind(caller, options.jobs, handlers);
  const { retentionMs = WEEK_MS } = options;
  // `createQueue` has put it there, or nothing.
  const limits = options.queue.limits as LimitingFeature | undefined;
  const served = servedQueues(caller, options);
  for (const [queue, settings] of served) limits?.checkServed(caller, queue, settings, options.handlers);
  return {
    servedQueues: served,
    listen: checkBoolean(what('listen'), options.listen ?? true),
    pollIntervalMs: checkDurationMs(what('pollIntervalMs'), options.pollIntervalMs ?? 75, 5, 60_000),
    shutdownTimeoutMs: checkDurationMs(
      what('shutdownTimeoutMs'),
      options.shutdownTimeoutMs ?? 25_000,
      0,
      3_600_000,
    ),
    retentionMs:
      retentionMs === Number.POSITIVE_INFINITY
        ? retentionMs
        : checkDurationMs(what('retentionMs'), retentionMs, 0, MAX_DELAY_MS),
    reconnectMs: checkDurationMs(what('reconnectMs'), options.reconnectMs ?? 2_500, 1_000, 60_000),
    silentMs: checkDurationMs(what('silentMs'), options.silentMs ?? 30_000, 15_000, 3_600_000),
    frozenMs: checkDurationMs(what('frozenMs'), options.frozenMs ?? 60_000, 15_000, 3_600_000),
    name: checkText(what('name'), options.name ?? processName(), MAX_NAME_BYTES),
    log: isSilentOrUnset(options.log) ? options.log : checkLogger(what('log, if not false,'), options.log),
    around: options.queue.around,
    limits,
    // As above.
    context: options.queue.workflows as ContextFeature | undefined,
    features: additions.of(caller, options),
  };
}

function isSilentOrUnset(log: unknown): log is false | undefined {
  return log === false || log === undefined;
}
