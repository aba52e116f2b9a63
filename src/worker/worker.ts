import { listenOrPoll } from '../drivers/listen-or-poll.ts';
import { preparing } from '../drivers/prepared.ts';
import { QueueError } from '../errors.ts';
import { checkDatabase } from '../queries/check-database.ts';
import type { QueueTables } from '../schema/create-queue-tables.ts';
import type { OwnColumns } from '../schema/own-columns.ts';
import type { Database, Runner } from '../sql/executor.ts';
import { REQUESTED } from '../sql/wake-channel.ts';
import { WorkerEmitter, type WorkerEvents } from './attempt/events.ts';
import { type Handler, handlersByKind } from './attempt/handler.ts';
import { ClaimLoop } from './claim/claim-loop.ts';
import { Watch } from './claim/watch.ts';
import { onFirstSignal } from './on-first-signal.ts';
import { type WorkerOptions, type WorkerSettings, workerSettings } from './options.ts';
import { Listener } from './presence/listener.ts';
import { Liveness } from './presence/liveness.ts';
import { stopGracefully } from './stop.ts';
import { Retries } from './time/retries.ts';
import { pruneLoop } from './upkeep/prune.ts';
import { Requests } from './upkeep/requests.ts';

/** How often a worker that listens asks for due jobs all the same: nobody notifies of some. */
const WATCH_MS = 1_000;

/** One process's claiming object: made by {@link createWorker}. */
export class Worker {
  readonly #db: Database;
  readonly #tables: QueueTables;
  readonly #handlers: ReadonlyMap<string, Handler>;
  readonly #settings: WorkerSettings;
  readonly #untilEmpty: boolean;
  readonly #events = new WorkerEmitter();
  readonly #liveness: Liveness;
  readonly #listener: Listener;
  /** Ends the pruning. */
  readonly #stopping = new AbortController();
  readonly #retries = new Retries();
  /** Ends the settling, at the very last. */
  readonly #giveUp = new AbortController();
  readonly #stopped: Promise<void>;
  #markStopped: () => void = () => undefined;
  #loops: readonly ClaimLoop[] = [];
  #watch: Watch | undefined;
  #requests: Requests | undefined;
  #work: Promise<void> = Promise.resolve();
  #starting: Promise<void> | undefined;
  #stop: Promise<void> | undefined;

  /** @internal use {@link createWorker} */
  constructor(db: Database, options: WorkerOptions<Database>, untilEmpty = false) {
    this.#settings = workerSettings(options); // First: it checks them.
    this.#db = db;
    this.#tables = options.queue.tables;
    this.#handlers = handlersByKind(options.handlers);
    this.#untilEmpty = untilEmpty;
    this.#stopped = new Promise((resolve) => {
      this.#markStopped = resolve;
    });
    const { name, reconnectMs, silentMs, frozenMs, concurrencyByQueue, listen } = this.#settings;
    this.#listener = new Listener({
      db,
      tables: this.#tables,
      listen: listen && !untilEmpty ? listenOrPoll(db) : undefined,
      events: this.#events,
      retries: this.#retries,
      onWake: (queue) => {
        if (queue === undefined || queue === REQUESTED) this.#requests?.look();
        if (queue === undefined) this.#watch?.look();
        else for (const loop of this.#loops) if (loop.queue === queue) loop.notify();
      },
      onProven: (connection) => this.#liveness.holdSession(connection),
    });
    this.#liveness = new Liveness({
      db,
      tables: this.#tables,
      name,
      queues: [...concurrencyByQueue.keys()],
      reconnectMs,
      silentMs,
      frozenMs,
      events: this.#events,
      onDeclaredGone: async () => {
        await Promise.all(this.#loops.map((loop) => loop.endLostAttempts()));
      },
      onOthersGone: () => {
        for (const loop of this.#loops) {
          loop.bands.sweepNext();
          loop.wake();
        }
      },
      onReturn: () => this.#retries.now(),
    });
  }

  /** Listens to what the worker does. Listeners are called after the database knows. */
  on<K extends keyof WorkerEvents>(event: K, listener: (...args: WorkerEvents[K]) => void): this {
    this.#events.on(event, listener);
    return this;
  }

  off<K extends keyof WorkerEvents>(event: K, listener: (...args: WorkerEvents[K]) => void): this {
    this.#events.off(event, listener);
    return this;
  }

  /**
   * Checks the database, registers, and begins to claim. Resolves when it claims; a second call changes nothing.
   *
   * @throws MissingMigrationError | UnsupportedPostgresError, or the driver's error when the database cannot be reached
   * @throws QueueError when the worker was stopped before: make a new one
   */
  start(): Promise<void> {
    if (this.#stop !== undefined) {
      return Promise.reject(new QueueError('This worker has been stopped; create another'));
    }
    this.#starting ??= this.#start().catch((error: unknown) => {
      // Nothing runs yet, so the next call may try again.
      this.#starting = undefined;
      throw error;
    });
    return this.#starting;
  }

  /**
   * Starts, and works until SIGINT, SIGTERM or {@link stop}; then stops gracefully and resolves. A second signal ends the
   * process at once, as signals do.
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
   * Claims no more, lets handlers finish within `shutdownTimeoutMs`, aborts the signals of the others, gives their jobs back
   * without spending an attempt, and leaves. Can be called any number of times. Never rejects: what fails is an `error` event, and
   * jobs that could not be given back are found by other workers once it is declared gone.
   */
  stop(): Promise<void> {
    this.#stop ??= this.#stopGracefully();
    return this.#stop;
  }

  /** Resolves when the queues are empty (only for a worker that works until then). @internal */
  emptied(): Promise<void> {
    return this.#work;
  }

  async #start(): Promise<void> {
    await checkDatabase(this.#db, this.#tables);
    const workerId = await this.#liveness.start();
    const { concurrencyByQueue, pollIntervalMs, name, retentionMs } = this.#settings;
    const environment = { db: this.#db, tables: this.#tables, workerId };
    const events = this.#events;
    const runner = preparing(this.#db, (error) =>
      events.emit('error', { error, during: 'preparing a statement; from now on none is prepared' }),
    );
    const watch = this.#untilEmpty ? undefined : this.#newWatch(runner, workerId);
    this.#watch = watch;
    this.#loops = [...concurrencyByQueue].map(
      ([queue, concurrency]) =>
        new ClaimLoop({
          environment,
          runner,
          queue,
          handlers: this.#handlers,
          concurrency,
          pollIntervalMs,
          events,
          watch,
          retries: this.#retries,
          giveUp: this.#giveUp.signal,
        }),
    );
    this.#requests = new Requests({ ...environment, loops: this.#loops, listener: this.#listener, events });
    // Before the first claim: a queue may have been paused long ago.
    await this.#requests.start();
    events.emit('started', { workerId, name, queues: [...concurrencyByQueue.keys()] });
    this.#work = this.#runLoops();
    void watch?.run();
    // Not waited for: a worker works from the start, whether it can listen or not.
    if (!this.#untilEmpty) this.#listener.start();
    void pruneLoop({ db: this.#db, tables: this.#tables, retentionMs, events }, this.#stopping.signal);
  }

  #newWatch(runner: Runner, workerId: number): Watch {
    const { pollIntervalMs } = this.#settings;
    const watch = new Watch({
      runner,
      tables: this.#tables,
      workerId,
      kinds: [...this.#handlers.keys()],
      intervalMs: () => (this.#listener.listening ? Math.max(WATCH_MS, pollIntervalMs) : pollIntervalMs),
      events: this.#events,
    });
    // The pause of one that listens is long for one that must poll.
    this.#events.on('polling', () => watch.look());
    return watch;
  }

  async #runLoops(): Promise<void> {
    let claimed: number[];
    do {
      claimed = await Promise.all(this.#loops.map((loop) => loop.run()));
      // A queue that was empty early may have got jobs from the handlers of another.
    } while (this.#loops.length > 1 && claimed.some((jobs) => jobs > 0) && !this.#stopping.signal.aborted);
  }

  async #stopGracefully(): Promise<void> {
    // A start that is under way is let through first; its error is its caller's.
    await this.#starting?.catch(() => undefined);
    this.#stopping.abort();
    await stopGracefully({
      loops: this.#loops,
      watch: this.#watch,
      requests: this.#requests,
      work: this.#work,
      liveness: this.#liveness,
      listener: this.#listener,
      events: this.#events,
      shutdownTimeoutMs: this.#settings.shutdownTimeoutMs,
      giveUp: this.#giveUp,
    });
    this.#events.emit('stopped');
    this.#markStopped();
  }
}

/**
 * A worker for the handlers' jobs. It uses the given database, and one connection beside its pool to listen
 * for notifications and to show that it lives, where the driver can.
 *
 * ```ts
 * const worker = createWorker(db, { queue, handlers: [handle(sendReceipt, async ({ payload }) => { … })] });
 * await worker.run();
 * ```
 *
 * @throws UnknownKindError | RangeError | TypeError when a setting is wrong
 */
export function createWorker<TDb extends Database, TOwn extends OwnColumns>(
  db: TDb,
  options: WorkerOptions<NoInfer<TDb>, TOwn>,
): Worker {
  // That the handlers fit the database and the tables has been checked; from here on it is nobody's business.
  return new Worker(db, options as unknown as WorkerOptions<Database>);
}
