import { checkOptions, namesOf } from '../../job/known-options.ts';
import { shown } from '../../job/shown.ts';
import { isConsole } from '../../runtime.ts';
import type { WorkerEvents } from '../base/events.ts';
import type { Until } from '../base/until.ts';
import {
  LINES,
  type LoggedEvent,
  type LogLine,
  listeningLine,
  pollingLine,
  startedLine,
} from './log-lines.ts';
import { checkLogger, LEVELS, type Logger, type LogLevel, printed } from './logger.ts';

/** Something whose events can be listened to: a `Worker`. */
export interface EventSource {
  on<K extends keyof WorkerEvents>(event: K, listener: (...args: WorkerEvents[K]) => void): unknown;
  off<K extends keyof WorkerEvents>(event: K, listener: (...args: WorkerEvents[K]) => void): unknown;
}

/** The options of {@link logWorker}. */
export interface LogWorkerOptions {
  /**
   * The least important lines that are logged. A logger may leave out more.
   * @default 'info' for the console, 'debug' for every other logger
   */
  level?: LogLevel | undefined;
}

const OPTIONS = namesOf<LogWorkerOptions>({ level: true });

/**
 * Logs what a worker does, one line for each job and more:
 *
 * - completed, snoozed and waiting jobs as `debug`;
 * - its start and stop, cancelled jobs and pauses as `info`;
 * - retries, lost jobs and workers that are gone as `warn`;
 * - discarded jobs and errors of the worker as `error`.
 *
 * The fields are `jobId`, `kind`, `queue`, `attempt`, `waitMs` (from due to claimed), `durationMs`,
 * `workerId`, `traceId` and `err`. Never a payload, an output or the parameters of a statement.
 *
 * `createWorker({ log: logger })` does the same, and leaves out what a worker prints by default.
 *
 * ```ts
 * logWorker(worker, pino());
 * ```
 *
 * @returns a function that ends it
 * @throws TypeError when the logger or an option is wrong
 */
export function logWorker(worker: EventSource, logger: Logger, options: LogWorkerOptions = {}): () => void {
  checkLogger('logWorker: the logger', logger);
  const { level = isConsole(logger) ? 'info' : 'debug' } = checkOptions(
    'logWorker: options',
    options,
    OPTIONS,
  );
  if (!LEVELS.includes(level)) {
    throw new TypeError(`logWorker: level must be one of ${LEVELS.join(', ')}; got ${shown(level)}`);
  }
  // A name is looked up once a logger is asked, so that its level may change, or a test replace a method.
  const write = isConsole(logger)
    ? ({ level, message }: LogLine) => Reflect.apply(logger[level], logger, [printed(message)])
    : ({ level, message, fields }: LogLine) => logger[level](fields, message);
  const wanted = (line: LogLevel) =>
    LEVELS.indexOf(line) >= LEVELS.indexOf(level) && (logger.isLevelEnabled?.(line) ?? true);
  return subscribe(worker, { write, wanted });
}

interface Log {
  /** Returns what the logger returns: a promise of one that is `async` may reject. */
  readonly write: (line: LogLine) => unknown;
  /** Whether lines of this level are written. */
  readonly wanted: (level: LogLevel) => boolean;
}

/** Events that are logged at `debug` only: their lines are not made while they are not wanted. */
const QUIET: readonly LoggedEvent[] = ['completed', 'snoozed', 'waiting', 'fired'];

function subscribe(worker: EventSource, { write, wanted }: Log): () => void {
  let workerId: number | undefined;
  const say = (line: LogLine | undefined) => {
    if (line === undefined || !wanted(line.level)) return undefined;
    return write(workerId === undefined ? line : { ...line, fields: { ...line.fields, workerId } });
  };
  const ends = (Object.keys(LINES) as LoggedEvent[]).map((event) =>
    listen(worker, event, (...told) => {
      if (QUIET.includes(event) && !wanted('debug')) return undefined;
      return say(lineOf(event, told));
    }),
  );
  ends.push(
    listen(worker, 'started', (started) => {
      workerId = started.workerId;
    }),
    onStarted(worker, (started, listening) => say(startedLine(started, listening))),
    onLaterMode(worker, say),
  );
  return () => {
    for (const end of ends) end();
  };
}

function lineOf<K extends LoggedEvent>(event: K, told: WorkerEvents[K]): LogLine | undefined {
  return LINES[event](...told);
}

function listen<K extends keyof WorkerEvents>(
  worker: EventSource,
  event: K,
  listener: (...args: WorkerEvents[K]) => unknown,
): () => void {
  worker.on(event, listener);
  return () => worker.off(event, listener);
}

/**
 * Calls back when a worker has started and knows whether notifications arrive, which may be a moment later.
 */
function onStarted(
  worker: EventSource,
  then: (started: WorkerEvents['started'][0], listening: boolean) => unknown,
): () => void {
  let started: WorkerEvents['started'][0] | undefined;
  let listening: boolean | undefined;
  const proceed = () => {
    if (started === undefined || listening === undefined) return undefined;
    end();
    return then(started, listening);
  };
  const ends = [
    listen(worker, 'started', (told) => {
      started = told;
      return proceed();
    }),
    listen(worker, 'listening', () => {
      listening = true;
      return proceed();
    }),
    listen(worker, 'polling', () => {
      listening = false;
      return proceed();
    }),
  ];
  const end = () => {
    for (const stop of ends) stop();
  };
  return end;
}

/** The line of the start says how it begins; only changes of that, and failures, are told. */
function onLaterMode(worker: EventSource, say: (line: LogLine) => unknown): () => void {
  let known = false;
  const ends = [
    listen(worker, 'listening', () => {
      const isFirst = !known;
      known = true;
      return isFirst ? undefined : say(listeningLine());
    }),
    listen(worker, 'polling', ({ error }) => {
      known = true;
      // Told not to listen, or with a driver that cannot, it polls from the start.
      return error === undefined ? undefined : say(pollingLine(error));
    }),
  ];
  return () => {
    for (const end of ends) end();
  };
}

/**
 * What a worker prints unless it is told otherwise, one line each on stderr: that it has started, what was
 * discarded and why, and that its stop waits for handlers. One that ends when its queues are empty has
 * neither a start nor a stop worth a line.
 *
 * @param whose what each line begins with, such as the name of a shard
 */
export function printWorker(worker: EventSource, until: Until, whose = ''): void {
  const print = (line: LogLine | undefined) => line && console.error(printed(`${whose}${line.message}`));
  listen(worker, 'discarded', (told) => print(LINES.discarded(told)));
  if (until === 'empty') return;
  onStarted(worker, (started, listening) => print(startedLine(started, listening)));
  listen(worker, 'stopping', (told) => {
    if (told.running > 0) print(LINES.stopping(told));
  });
}
