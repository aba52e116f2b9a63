import { isPoolEnded } from '../../drivers/ended-pool.ts';
import { describeThrown, withoutQuery } from '../../job/describe-error.ts';
import type { ClaimedJob } from '../../queries/claim/claim-jobs.ts';
import { type InContext, keepContext } from '../../runtime.ts';
import { isPromise } from './is-promise.ts';

/**
 * What a worker announces, always after it is written. Each `job` is plain data, its payload as stored: what
 * the handler does to its own `payload` and `job` does not show here. Do not change it, since all listeners
 * of all its events get the same one.
 */
export interface WorkerEvents {
  /** The worker is registered and claims; `concurrency` is by queue. */
  started: [
    {
      readonly workerId: number;
      readonly name: string;
      readonly queues: readonly string[];
      readonly concurrency: Readonly<Record<string, number>>;
    },
  ];
  /** A claim came back with jobs. */
  claimed: [{ readonly queue: string; readonly count: number; readonly durationMs: number }];
  /**
   * An attempt begins, before its payload is validated. One of `completed`, `failed`, `snoozed`, `waiting`,
   * `cancelled`, `interrupted` and `lost` follows. A job that ends without an attempt has none: one that was
   * cancelled before, or whose workers have all died.
   */
  began: [{ readonly job: ClaimedJob }];
  /** A job has ended well. `durationMs`, here and below: how long its attempt took, without the writing. */
  completed: [{ readonly job: ClaimedJob; readonly durationMs: number }];
  /** An attempt has failed. `retryInMs` is undefined when the job is discarded, or cancelled. */
  failed: [
    {
      readonly job: ClaimedJob;
      readonly error: unknown;
      readonly retryInMs: number | undefined;
      readonly durationMs: number;
    },
  ];
  /** A job has ended badly: no attempt is left, or a NonRetryableError was thrown. */
  discarded: [{ readonly job: ClaimedJob; readonly error: unknown }];
  /** A handler has asked to be called later. */
  snoozed: [{ readonly job: ClaimedJob; readonly delayMs: number; readonly durationMs: number }];
  /**
   * A handler waits in its middle, and is called again after `delayMs`, or when what it waits for comes;
   * `null` without a limit of time. Only handlers with `step` do.
   */
  waiting: [{ readonly job: ClaimedJob; readonly delayMs: number | null; readonly durationMs: number }];
  /** A job has ended because its handler asked for that, or a call of `queue.cancel` did. */
  cancelled: [{ readonly job: ClaimedJob; readonly reason: string; readonly durationMs: number }];
  /**
   * A job was given back and is due again, its attempt not spent: the worker stopped before its handler
   * ended, or it had been claimed ahead and had not begun (`began` is false).
   */
  interrupted: [{ readonly job: ClaimedJob; readonly began: boolean }];
  /** An attempt ended, but its job was no longer held by this worker, so nothing was written. */
  lost: [{ readonly job: ClaimedJob }];
  /**
   * This worker has fired a schedule. `ids` are the jobs of its ticks: fewer than `ticks` where one that must
   * not overlap was still live.
   */
  fired: [{ readonly schedule: string; readonly ticks: readonly Date[]; readonly ids: readonly number[] }];
  /** This worker has declared another gone, whose jobs are due again. */
  gone: [{ readonly workerId: number; readonly name: string }];
  /** Notifications of enqueued jobs arrive: from now on an idle worker asks about once a second. */
  listening: [];
  /**
   * Notifications do not arrive, or no longer: the worker asks every `pollIntervalMs`. `error` says why; it
   * is undefined when the worker was told not to listen, or the driver cannot.
   */
  polling: [{ readonly error: unknown }];
  /** A queue is paused: nothing of it is begun until it is resumed. */
  paused: [{ readonly queue: string }];
  /** A queue is no longer paused. */
  resumed: [{ readonly queue: string }];
  /** A queue has no due job and none that runs; emitted once, until there is one again. */
  idle: [{ readonly queue: string }];
  /**
   * Something in the worker failed, such as a query; it goes on. A query's `error` is the driver's, without
   * Drizzle's, which repeats the parameters. Without a listener its name, message and stack go to stderr.
   */
  error: [{ readonly error: unknown; readonly during: string }];
  /** A stop has begun: nothing more is claimed, and `running` handlers may end within `timeoutMs`. */
  stopping: [{ readonly running: number; readonly timeoutMs: number }];
  /** The worker has stopped: nothing of it runs any more. */
  stopped: [];
}

type Listener<K extends keyof WorkerEvents> = (...args: WorkerEvents[K]) => unknown;

/** The events that show a job, and so a payload. */
const SHOW_JOBS: readonly (keyof WorkerEvents)[] = [
  'began',
  'completed',
  'failed',
  'discarded',
  'snoozed',
  'waiting',
  'cancelled',
  'interrupted',
  'lost',
];

/**
 * The events of one worker. Each of its listeners is called on its own: one that throws, or whose promise
 * rejects, harms no other, and is an `error` event. The listeners of one event share an async context, in
 * which they leave nothing for others.
 */
export class WorkerEmitter {
  readonly #listeners = new Map<keyof WorkerEvents, Set<Listener<never>>>();
  readonly #inContext: InContext;
  #showsJobs = false;

  constructor(inContext = keepContext()) {
    this.#inContext = inContext;
  }

  /** For the library's own listeners: they look at no payload. */
  on<K extends keyof WorkerEvents>(event: K, listener: Listener<K>): void {
    this.#listeners.set(event, this.#of(event).add(listener));
  }

  /** For those of the app. */
  onForApp<K extends keyof WorkerEvents>(event: K, listener: Listener<K>): void {
    if (SHOW_JOBS.includes(event)) this.#showsJobs = true;
    this.on(event, listener);
  }

  /** Whether the app has listened to events that show it jobs. */
  get showsJobs(): boolean {
    return this.#showsJobs;
  }

  off<K extends keyof WorkerEvents>(event: K, listener: Listener<K>): void {
    this.#of(event).delete(listener);
  }

  /** Emits an event; no error of a statement that an ended pool has refused: one error says that it was. */
  emit<K extends keyof WorkerEvents>(event: K, ...args: WorkerEvents[K]): void {
    if (event === 'error' && isPoolEnded((args as WorkerEvents['error'])[0].error)) return;
    this.#tellAll(event, ...args);
  }

  #tellAll<K extends keyof WorkerEvents>(event: K, ...args: WorkerEvents[K]): void {
    const listeners = this.#listeners.get(event) as Set<Listener<K>> | undefined;
    if (listeners === undefined || listeners.size === 0) {
      // An unheard error would be worse than a line on stderr.
      if (event === 'error') print(...(args as WorkerEvents['error']));
      return;
    }
    const told = withoutParameters(event, args);
    // A copy: a listener may add and remove listeners.
    const copy = [...listeners];
    this.#inContext(() => {
      for (const listener of copy) this.#tell(event, listener, told);
    });
  }

  #tell<K extends keyof WorkerEvents>(event: K, listener: Listener<K>, told: WorkerEvents[K]): void {
    try {
      const returned = listener(...told);
      // Without a listener of its own, a rejection would end the process.
      if (isPromise(returned)) {
        Promise.resolve(returned).catch((error: unknown) => this.#noteFailure(event, error));
      }
    } catch (error) {
      this.#noteFailure(event, error);
    }
  }

  /**
   * An error of a listener of errors is printed: as an `error` event it would come back to that listener. One
   * that says that a pool has ended may be about another pool of the app.
   */
  #noteFailure(event: keyof WorkerEvents, error: unknown): void {
    if (event === 'error') print({ error, during: 'a listener of its errors' });
    else this.#tellAll('error', { error, during: `a listener of '${event}'` });
  }

  /** A map cannot say that the listeners under a key are that key's; `on` is the only way in. */
  #of<K extends keyof WorkerEvents>(event: K): Set<Listener<K>> {
    return (this.#listeners.get(event) ?? new Set()) as Set<Listener<K>>;
  }
}

/** The parameters of a failed query may be outputs and errors of jobs, which do not belong in a log. */
function withoutParameters<K extends keyof WorkerEvents>(event: K, args: WorkerEvents[K]): WorkerEvents[K] {
  if (event !== 'error' && event !== 'polling') return args;
  // These two events hold an `error`, and are the same without what is around it.
  const [told] = args as WorkerEvents['error' | 'polling'];
  try {
    return [{ ...told, error: withoutQuery(told.error) }] as WorkerEvents[K];
  } catch {
    // Anything can be thrown, even a proxy that throws when it is asked what it is: that is not a failed
    // query.
    return args;
  }
}

/** What may be printed: anything else on an error (a row, a URL with its password) stays out of the log. */
function print({ error, during }: WorkerEvents['error'][0]): void {
  console.error('drizzle-queue worker:', { during, ...describeThrown(error) });
}
