import { QueueError } from '../../errors.ts';
import { hasOneConnection, listenApartOf } from '../drivers/detect.ts';
import { aborted } from '../drivers/listen.ts';
import { checkPool } from '../drivers/single-connection.ts';
import { checkDatabase } from '../queries/presence/check-database.ts';
import { registerWorker } from '../queries/presence/register-worker.ts';
import { removeWorker } from '../queries/presence/remove-worker.ts';
import { allowManyListeners, keepContext } from '../runtime.ts';
import type { QueueTables } from '../schema/create-queue-tables.ts';
import { checkExecutor, type Database } from '../sql/executor.ts';
import { resultWithin } from '../time/resolves-within.ts';
import { Background } from './base/background.ts';
import { WorkerEmitter, type WorkerEvents } from './base/events.ts';
import type { Until } from './base/until.ts';
import { healthOf, type WorkerHealth } from './health.ts';
import { logWorker, printWorker } from './log/log-worker.ts';
import { onFirstSignal } from './on-first-signal.ts';
import {
  type PlainWorkerOptions,
  type WorkerAdditions,
  type WorkerSettings,
  workerSettings,
} from './options.ts';
import { WorkerParts } from './parts.ts';
import { checkNode, reached, registered } from './reached.ts';
import { type Handler, handlersByKind } from './run/handler.ts';
import { NoAnswerError } from './statements/no-answer-error.ts';
import { openBeside } from './statements/own-connection.ts';
import { Statements } from './statements/statements.ts';
import { stopGracefully } from './stop.ts';

/** How long a stop waits for the answer to a start. */
const START_MS = 3_000;
/** A migration may hold a lock that the first statements wait for, and each that is given up waits on. */
const START_DEADLINE_MS = 30_000;

const POOL_ENDED =
  'The pool was ended before worker.stop(). Call await worker.stop() first and end the pool after it, or ' +
  'the outcomes of running jobs may be lost and the jobs run twice. This worker stops now';

export interface MakingOfWorker {
  /** @default 'stopped' */
  readonly until?: Until;
  /** The features that it is given. @default none */
  readonly additions?: WorkerAdditions | undefined;
}

/** Claims and runs jobs in this process; made by {@link createWorker}. */
export class Worker {
  readonly #db: Database;
  readonly #tables: QueueTables;
  readonly #handlers: ReadonlyMap<string, Handler>;
  readonly #settings: WorkerSettings;
  readonly #until: Until;
  /** In which the worker was created: that of no job, whatever the handlers do to theirs. */
  readonly #inContext = keepContext();
  readonly #events = new WorkerEmitter(this.#inContext);
  readonly #background = new Background(this.#events);
  readonly #statements: Statements;
  /** Ends a start that is under way, with the reason why another is refused. */
  readonly #stopping = new AbortController();
  readonly #giveUp = new AbortController();
  readonly #stopped: Promise<void>;
  #markStopped: () => void = () => undefined;
  /** Resolves when no loop claims any more. */
  #work: Promise<void> = Promise.resolve();
  #starting: Promise<WorkerParts> | undefined;
  #parts: WorkerParts | undefined;
  #state: 'starting' | 'started' | 'stopped' = 'starting';
  #stop: Promise<void> | undefined;

  /** @internal use {@link createWorker} */
  constructor(
    db: Database,
    options: PlainWorkerOptions<Database>,
    { until = 'stopped', additions }: MakingOfWorker = {},
  ) {
    const caller = until === 'empty' ? 'drain' : 'createWorker';
    checkExecutor(caller, db);
    checkPool(caller, db);
    this.#settings = workerSettings(caller, options, additions); // First: it checks them.
    // Each queue that settles listens to it, and Node.js warns of more than ten listeners.
    allowManyListeners(this.#giveUp.signal);
    this.#db = db;
    this.#tables = options.queue.tables;
    this.#handlers = handlersByKind(caller, options.handlers);
    this.#until = until;
    this.#stopped = new Promise((resolve) => {
      this.#markStopped = resolve;
    });
    const { log } = this.#settings;
    const listen = hasOneConnection(db) ? undefined : listenApartOf(db);
    this.#statements = new Statements({
      db,
      open: listen && (() => openBeside(listen)),
      onRefused: (error) =>
        this.#events.emit('error', {
          error,
          during: 'preparing a statement; from now on statements are not prepared',
        }),
      onPoolEnded: (canSend, error) => this.#endWithPool(canSend, error),
    });
    if (log === undefined) printWorker(this.#events, until);
    else if (log !== false) logWorker(this.#events, log);
  }

  /**
   * Listens to what the worker does. Listeners are called after the database knows. One that throws, or is
   * `async` and rejects, is an `error` event; of a listener of `error`, the error is printed.
   */
  on<K extends keyof WorkerEvents>(event: K, listener: (...args: WorkerEvents[K]) => void): this {
    this.#events.onForApp(event, listener);
    return this;
  }

  /** Listens for the library itself, which looks at no payload. @internal */
  onOwn<K extends keyof WorkerEvents>(event: K, listener: (...args: WorkerEvents[K]) => void): void {
    this.#events.on(event, listener);
  }

  /** Tells the listeners of an error that was met on behalf of this worker. @internal */
  tellError(error: unknown, during: string): void {
    this.#events.emit('error', { error, during });
  }

  off<K extends keyof WorkerEvents>(event: K, listener: (...args: WorkerEvents[K]) => void): this {
    this.#events.off(event, listener);
    return this;
  }

  /**
   * Checks the database, registers, and begins to claim. Resolves when it claims, or once a {@link stop}
   * called meanwhile resolves; a second call changes nothing. Waits for the database as the driver does.
   * @throws InvalidPayloadError when the payload of a schedule is refused
   * @throws MissingMigrationError | UnsupportedPostgresError
   * @throws QueueError when it cannot connect (the driver's error is its `cause`), or was stopped before
   */
  async start(): Promise<void> {
    this.#stopping.signal.throwIfAborted();
    this.#starting ??= this.#start().catch((error: unknown) => {
      // Nothing runs yet, so the next call may try again.
      this.#starting = undefined;
      throw error;
    });
    const started = this.#starting.catch((error: unknown) => {
      if (error !== this.#stopping.signal.reason) throw error;
      return this.#stopped;
    });
    await Promise.race([started, this.#stopped]);
  }

  /**
   * Starts, and works until SIGINT, SIGTERM or {@link stop}; then stops gracefully and resolves. A second
   * signal ends the process at once, as signals do.
   */
  async run(): Promise<void> {
    const forget = onFirstSignal(() => void this.stop());
    try {
      await this.start();
      await this.#stopped;
    } finally {
      forget();
    }
  }

  /**
   * Claims no more, lets handlers finish within `shutdownTimeoutMs`, aborts the signals of the others, gives
   * their jobs back without spending an attempt, and leaves. Then nothing of the worker runs, sends or
   * listens. Takes at most `shutdownTimeoutMs` and 5 seconds, whatever the database does. Can be called any
   * number of times, also while the worker starts. Never rejects: failures are `error` events, and jobs that
   * could not be given back are found by other workers once this one is declared gone.
   */
  stop(): Promise<void> {
    this.#stop ??= this.#stopGracefully();
    return this.#stop;
  }

  /** The state of the worker, for probes and gauges; sends no query, and never throws. */
  health(): WorkerHealth {
    const { signal } = this.#stopping;
    return healthOf({
      parts: this.#parts,
      unansweredMs: this.#statements.unansweredMs,
      state: signal.aborted && this.#state !== 'stopped' ? 'stopping' : this.#state,
      hasFailed: this.#background.hasFailed,
      slots: [...this.#settings.servedQueues.values()].reduce((slots, queue) => slots + queue.concurrency, 0),
    });
  }

  /**
   * Whether the queues are empty, once that is so or the worker is stopped before, as by the end of its pool;
   * only for a worker that works until then. @internal
   */
  async emptied(): Promise<boolean> {
    await this.#work;
    return !this.#stopping.signal.aborted;
  }

  async #start(): Promise<WorkerParts> {
    const { servedQueues, name, limits, context, features } = this.#settings;
    const queues = [...servedQueues.keys()];
    const { signal } = this.#stopping;
    await Promise.all(features.map((feature) => feature.prepare?.()));
    const needed = [...features.map(({ tables }) => tables), limits?.tablesFor(queues), context];
    const runner = this.#statements.of('start', { leastMs: START_DEADLINE_MS });
    const present = needed.filter((tables) => tables !== undefined);
    const tables = await reached(this.#answered(() => checkDatabase(runner, this.#tables, present)));
    signal.throwIfAborted();
    limits?.checkServer(queues, tables);
    context?.checkServer(tables);
    const kinds = [...this.#handlers.keys()];
    await this.#answered(() => checkNode(runner, tables));
    const register = () => registered(registerWorker(runner, tables, { name, queues, kinds }), tables);
    const workerId = await this.#answered(register);
    // The stop did not wait for this answer: else peers would declare this worker gone after a while.
    if (this.#state === 'stopped') await this.#unregister(tables, workerId);
    const parts = new WorkerParts({
      db: this.#db,
      statements: this.#statements,
      tables,
      handlers: this.#handlers,
      settings: this.#settings,
      until: this.#until,
      workerId,
      events: this.#events,
      inContext: this.#inContext,
      giveUp: this.#giveUp.signal,
    });
    this.#parts = parts;
    if (signal.aborted) return parts;
    this.#background.start(parts.background);
    // They ask the database, which may take as long as the driver waits.
    const stopped = aborted(signal);
    const ready = Promise.all([parts.requests.ready, parts.limits?.ready, parts.context?.ready]);
    await Promise.race([ready, stopped]);
    // Nothing else fires, or takes jobs into groups, for a worker that ends when its queues are empty.
    if (this.#until === 'empty') {
      const looks = parts.features.map((part) => part.lookOnce?.(signal));
      await Promise.race([Promise.all([...looks, parts.limits?.settled]), stopped]);
    }
    const mayClaim = Promise.race([parts.liveness.ready, stopped]);
    this.#work = this.#runLoops(parts, mayClaim);
    await mayClaim;
    if (!signal.aborted) {
      this.#state = 'started';
      const concurrency = Object.fromEntries(
        [...servedQueues].map(([queue, served]) => [queue, served.concurrency]),
      );
      this.#events.emit('started', { workerId, name, queues, concurrency });
    }
    return parts;
  }

  /** Asks until there is an answer: a start waits for the database, and for locks on its tables. */
  async #answered<T>(ask: () => Promise<T>): Promise<T> {
    for (;;) {
      try {
        return await ask();
      } catch (error) {
        if (!(error instanceof NoAnswerError)) throw error;
        this.#events.emit('error', { error, during: 'starting' });
        this.#stopping.signal.throwIfAborted();
      }
    }
  }

  /** @throws why this worker cannot be started */
  async #unregister(tables: QueueTables, workerId: number): Promise<never> {
    try {
      await removeWorker(this.#db, tables, workerId);
    } catch (error) {
      this.#events.emit('error', { error, during: 'stopping' });
    }
    throw this.#stopping.signal.reason;
  }

  async #runLoops({ loops, context }: WorkerParts, mayClaim: Promise<unknown>): Promise<void> {
    const { signal } = this.#stopping;
    let isMore: boolean;
    do {
      const claimed = await Promise.all(loops.map((loop) => loop.run(mayClaim)));
      // A queue that was empty early may have got jobs from the handlers of another.
      isMore = loops.length > 1 && claimed.some((jobs) => jobs > 0);
      if (this.#until === 'empty' && !isMore && !signal.aborted) isMore = (await context?.moveOn()) ?? false;
    } while (isMore && !signal.aborted);
  }

  /**
   * The app has ended its pool before this worker had stopped. It says so once, and stops: what it still has
   * to write goes out on a connection of its own, or else is given up at once.
   */
  #endWithPool(canSend: Promise<boolean>, reason: unknown): void {
    const during = this.#stop === undefined ? 'working' : 'stopping';
    this.#events.emit('error', { error: new QueueError(POOL_ENDED), during });
    void this.stop();
    void canSend.then((can) => {
      if (!can) this.#giveUp.abort(reason);
    });
  }

  async #stopGracefully(): Promise<void> {
    this.#stopping.abort(new QueueError('start: this worker was stopped; create a new one'));
    // A start that is under way is ended as well; its error is its caller's.
    const starting = Promise.resolve(this.#starting).catch(() => undefined);
    const beganMs = performance.now();
    const parts = await resultWithin(starting, START_MS);
    if (parts !== undefined) {
      await stopGracefully({
        parts,
        background: this.#background,
        work: this.#work,
        events: this.#events,
        shutdownTimeoutMs: this.#settings.shutdownTimeoutMs,
        startTookMs: Math.min(performance.now() - beganMs, START_MS),
        giveUp: this.#giveUp,
      });
    }
    this.#statements.end();
    this.#state = 'stopped';
    this.#events.emit('stopped');
    this.#markStopped();
  }
}
