import {
  InvalidPayloadError,
  QueueError,
  type Worker,
  type WorkerEvents,
  type WorkerHealth,
} from '../../../index.ts';
import { onFirstSignal, sleep } from '../../../internal.ts';
import type { ShardEvent } from './shard-event.ts';
import { healthOfAll, type WorkersHealth } from './workers-health.ts';

/** The pauses between the tries of a start, each up to a quarter shorter, so that processes spread out. */
const FIRST_PAUSE_MS = 1_000;
const LONGEST_PAUSE_MS = 30_000;

const NOT_STARTED = 'Its last start failed, as its error event says; the start is tried again';

/** By listener, what takes it from each worker. */
type Unlisteners = Map<unknown, readonly (() => void)[]>;

/**
 * The workers of several databases, which start, work and stop as one; made by {@link createWorkers}. What
 * happens to one database does not concern the workers of the others.
 */
export class Workers<TName extends string = string> {
  /**
   * The worker of each shard, for what takes one worker, such as `observe` of `drizzle-queue/opentelemetry`.
   * One that is stopped by itself stays stopped, and the others go on.
   */
  readonly byShard: Readonly<Record<TName, Worker>>;
  readonly #workers: readonly (readonly [TName, Worker])[];
  readonly #listeners = new Map<keyof WorkerEvents, Unlisteners>();
  /** Shards whose last start failed. */
  readonly #failing = new Set<TName>();
  /** Shards whose worker has stopped. */
  readonly #over = new Set<TName>();
  readonly #stopping = new AbortController();
  readonly #ended: Promise<unknown>;
  #starting: Promise<void> | undefined;
  #stop: Promise<void> | undefined;

  /** @internal use {@link createWorkers} */
  constructor(byShard: Readonly<Record<TName, Worker>>) {
    this.byShard = byShard;
    // The keys are those of the shards.
    this.#workers = Object.entries<Worker>(byShard) as [TName, Worker][];
    const ends = this.#workers.map(
      ([shard, worker]) =>
        new Promise<void>((resolve) => {
          worker.onOwn('stopped', () => {
            this.#over.add(shard);
            resolve();
          });
        }),
    );
    this.#ended = Promise.all(ends);
  }

  /**
   * Listens to what the workers do. A listener is told what a worker tells (see `Worker.on`), and the name of
   * its shard: `workers.on('error', ({ shard, during, error }) => …)`.
   */
  on<K extends keyof WorkerEvents>(event: K, listener: (told: ShardEvent<K, TName>) => void): this {
    const ofEvent: Unlisteners = this.#listeners.get(event) ?? new Map();
    if (ofEvent.has(listener)) return this;
    const ends = this.#workers.map(([shard, worker]) => {
      // An event without an object of its own is told as the name alone.
      const tell = (...[told]: WorkerEvents[K]) => listener({ ...told, shard } as ShardEvent<K, TName>);
      worker.on(event, tell);
      return () => void worker.off(event, tell);
    });
    this.#listeners.set(event, ofEvent.set(listener, ends));
    return this;
  }

  off<K extends keyof WorkerEvents>(event: K, listener: (told: ShardEvent<K, TName>) => void): this {
    const ofEvent = this.#listeners.get(event);
    for (const end of ofEvent?.get(listener) ?? []) end();
    ofEvent?.delete(listener);
    return this;
  }

  /** Whether the app listens to an event of all shards. @internal */
  hears(event: keyof WorkerEvents): boolean {
    return (this.#listeners.get(event)?.size ?? 0) > 0;
  }

  /**
   * Starts the worker of each shard. Resolves once each of them has started or has failed to. A start that
   * fails is an `error` event of its shard, and is tried again after 1, 2, 4 and then up to 30 seconds, until
   * {@link stop}: the database may be down, or not migrated yet. A database that does not answer delays this
   * promise for as long as its driver waits, but no other worker. A second call changes nothing.
   *
   * @throws InvalidPayloadError when the payload of a schedule is refused; the workers are stopped then
   * @throws QueueError when they were stopped before
   */
  async start(): Promise<void> {
    if (this.#stopping.signal.aborted) {
      throw new QueueError('start: these workers were stopped; create new ones');
    }
    this.#starting ??= this.#start();
    await this.#starting;
  }

  /**
   * Starts, and works until SIGINT, SIGTERM or {@link stop}; then stops gracefully and resolves. Also
   * resolves when each worker has been stopped by itself. A second signal ends the process at once, as
   * signals do.
   *
   * @throws InvalidPayloadError | QueueError as {@link start}, and never since a database is down
   */
  async run(): Promise<void> {
    const forget = onFirstSignal(() => void this.stop());
    try {
      await this.start();
      await this.#ended;
    } finally {
      forget();
    }
  }

  /**
   * Stops all workers at the same time, each as `Worker.stop` does. So it takes at most the longest
   * `shutdownTimeoutMs` and 5 seconds, whatever the databases do. Can be called any number of times, also
   * while they start. Never rejects: failures are `error` events.
   */
  stop(): Promise<void> {
    this.#stopping.abort();
    this.#stop ??= Promise.all(this.#workers.map(([, worker]) => worker.stop())).then(() => undefined);
    return this.#stop;
  }

  /** The state of all workers and of each, for probes and gauges; sends no query, and never throws. */
  health(): WorkersHealth<TName> {
    const healths = this.#workers.map(([shard, worker]) => [shard, this.#healthOf(shard, worker)] as const);
    // Made of the names of the shards.
    return healthOfAll(Object.fromEntries(healths) as Record<TName, WorkerHealth>);
  }

  #healthOf(shard: TName, worker: Worker): WorkerHealth {
    const health = worker.health();
    if (!this.#failing.has(shard) || this.#over.has(shard)) return health;
    return { ...health, reasons: [...health.reasons, NOT_STARTED] };
  }

  async #start(): Promise<void> {
    const failures = await Promise.all(
      this.#workers.map(async ([shard, worker]) => {
        const failure = await this.#tryStart(shard, worker);
        if (failure === undefined) return undefined;
        // It is the same for all databases, and does not pass.
        if (failure.error instanceof InvalidPayloadError) return failure.error;
        void this.#startLater(shard, worker);
        return undefined;
      }),
    );
    const invalid = failures.find((error) => error !== undefined);
    if (invalid === undefined) return;
    await this.stop();
    throw invalid;
  }

  async #startLater(shard: TName, worker: Worker): Promise<void> {
    for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(2 * pauseMs, LONGEST_PAUSE_MS)) {
      await sleep(pauseMs * (1 - Math.random() / 4), this.#stopping.signal);
      if (this.#isOver(shard) || (await this.#tryStart(shard, worker)) === undefined) return;
    }
  }

  /** Returns why it did not start, which its listeners are told; `undefined` if it did, or is stopped. */
  async #tryStart(shard: TName, worker: Worker): Promise<{ readonly error: unknown } | undefined> {
    try {
      await worker.start();
      this.#failing.delete(shard);
      return undefined;
    } catch (error) {
      // A stop ended the start, and its caller knows.
      if (this.#isOver(shard)) return undefined;
      this.#failing.add(shard);
      worker.tellError(error, 'starting');
      return { error };
    }
  }

  #isOver(shard: TName): boolean {
    return this.#stopping.signal.aborted || this.#over.has(shard);
  }
}
