import type { ControlTables } from '../../features/control/index.ts';
import type { MetricsTables } from '../../features/metrics/schema/index.ts';
import type { ScheduleDefinition, TickOptions } from '../../features/schedules/define-schedule.ts';
import type { Schedules } from '../../features/schedules/schedules.ts';
import type { JobDefinition } from '../job/definition.ts';
import { checkOptions, namesOf } from '../job/known-options.ts';
import {
  checkBoolean,
  checkDurationMs,
  checkObject,
  checkText,
  MAX_DELAY_MS,
  MAX_NAME_BYTES,
} from '../job/limits.ts';
import { shown } from '../job/shown.ts';
import type { Around } from '../queue/enqueue/around.ts';
import type { Queue } from '../queue/queue.ts';
import { processName } from '../runtime.ts';
import type { OwnColumns } from '../schema/own-columns.ts';
import { checkEveryKind } from './every-kind.ts';
import { checkLogger, type Logger } from './log/logger.ts';
import { type Handler, handlersByKind } from './run/handler.ts';
import { type QueueSettings, type ServedQueue, servedQueues } from './served-queues.ts';
import type { ContextFeature, QueueFeature } from './worker-feature.ts';

/** The options of every function that runs jobs. */
export interface RunOptions<TDb, TOwn extends OwnColumns = OwnColumns, THandled extends string = string> {
  /** The queue whose tables hold the jobs, from `createQueue`. */
  queue: Queue<TOwn>;
  /** One handler per kind. Jobs of other kinds are left alone, so a rolling deploy fails no unknown jobs. */
  handlers: readonly Handler<TDb, TOwn['select'], THandled>[];
}

/** The options of {@link createWorker}. `THandled` are the handlers' kinds, `TKind` those of its `jobs`. */
export interface WorkerOptions<
  TDb,
  TOwn extends OwnColumns = OwnColumns,
  THandled extends string = string,
  TKind extends string = string,
> extends RunOptions<TDb, TOwn, THandled> {
  /**
   * Kinds of which none may be forgotten: one without a handler does not compile, and is a TypeError.
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
   * How long `stop` lets handlers finish, in milliseconds. Then their signals are aborted, and one second
   * later their jobs are given back without spending an attempt.
   * @default 25_000 (within the 30 s that most platforms give)
   */
  shutdownTimeoutMs?: number | undefined;
  /** How long results are kept, in milliseconds; `Infinity` for ever. @default 604_800_000 (7 days) */
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
   * before it is declared gone, in milliseconds, at least 15,000. Workers show themselves every 5 seconds.
   * Shorter recovers sooner from a crash, but also mistakes a blocked event loop for one sooner.
   * @default 30_000
   */
  silentMs?: number | undefined;
  /**
   * How long another worker that still holds its session must not be seen before it is declared gone, in
   * milliseconds, at least 15,000: its process hangs. A shorter time recovers sooner from a process that
   * hangs for ever; a longer one lets handlers block the event loop for longer.
   * @default 60_000
   */
  frozenMs?: number | undefined;
  /** The worker's name in `queue_workers`. @default 'host:pid' */
  name?: string | undefined;
  /**
   * Whether it writes what it does into the table that its queue has for metrics, by one statement a minute.
   * @default true where `createQueue` was given `metrics`
   */
  metrics?: boolean | undefined;
  /**
   * A logger for all that the worker does (see `logWorker`), or `false` for silence; errors of the worker
   * without a listener are printed all the same.
   * @default one line each on stderr: its start, each discarded job and why, handlers that a stop waits for
   */
  log?: Logger | false | undefined;
  /**
   * The schedules that this worker declares, each once; its queue must have schedules. It writes them into
   * the table and fires them, beside those of its kinds that `queue.schedules.set` has set. A schedule that
   * no worker declares any more does not fire, and is removed after 7 days.
   * @default none
   */
  schedules?: readonly ScheduleDefinition<TickOptions & TOwn['insert']>[] | undefined;
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
  readonly schedules: Schedules | undefined;
  /** The table of keys that outlive a job, if the queue has it. */
  readonly keys: ControlTables['queueKeys'] | undefined;
  /** The table of metrics, if the queue has it and the worker writes them. */
  readonly metrics: MetricsTables['queueMetrics'] | undefined;
  readonly declared: readonly ScheduleDefinition[];
  readonly limits: QueueFeature | undefined;
  /** What adds to the contexts of handlers. */
  readonly context: ContextFeature | undefined;
}

const OPTIONS = namesOf<WorkerOptions<unknown>>({
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
  metrics: true,
  log: true,
  schedules: true,
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
  const handlers = handlersByKind(options.handlers);
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
export function workerSettings<TDb>(options: WorkerOptions<TDb>): WorkerSettings {
  const what = (setting: string) => `createWorker: ${setting}`;
  const handlers = checkRunOptions('createWorker', options, OPTIONS);
  checkEveryKind(options.jobs, handlers);
  const { retentionMs = WEEK_MS } = options;
  // `createQueue` has put it there, or nothing.
  const limits = options.queue.limits as QueueFeature | undefined;
  const served = servedQueues(options);
  for (const [queue, settings] of served) limits?.checkServed(queue, settings, options.handlers);
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
    log: isSilentOrUnset(options.log)
      ? options.log
      : checkLogger('createWorker: log, if not false,', options.log),
    around: options.queue.around,
    limits,
    // As above.
    context: options.queue.workflows as ContextFeature | undefined,
    keys: options.queue.keys,
    metrics: checkBoolean(what('metrics'), options.metrics ?? true) ? options.queue.metrics : undefined,
    ...schedulesOf(options),
  };
}

function isSilentOrUnset(log: unknown): log is false | undefined {
  return log === false || log === undefined;
}

function schedulesOf<TDb>({ queue, schedules: declared = [] }: WorkerOptions<TDb>) {
  // `createQueue` has put it there, or nothing.
  const schedules = queue.schedules as Schedules | undefined;
  if (!Array.isArray(declared)) {
    throw new TypeError(`createWorker: schedules must be an array, got ${shown(declared)}`);
  }
  if (declared.length > 0 && schedules === undefined) {
    throw new TypeError(
      'createWorker: its queue has no schedules. Write ' +
        'createQueue({ schedules: schedulesIn(queueSchedules) }), ' +
        "with the table of 'drizzle-queue/schema/control'",
    );
  }
  const names = new Set<string>();
  for (const schedule of declared as readonly ScheduleDefinition[]) {
    const { name } = checkObject('createWorker: a schedule', schedule);
    if (names.has(name)) throw new TypeError(`createWorker: schedules has '${name}' twice`);
    names.add(name);
  }
  return { schedules, declared };
}
