import { describeThrown, withoutQuery } from '../../job/describe-error.ts';
import type { ClaimedJob } from '../../queries/claim-jobs.ts';

/** What a worker announces, always after it is written. Each `job` is plain data, its payload as stored. */
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
   * An attempt begins, before its payload is validated. One of `completed`, `failed`, `snoozed`, `cancelled`,
   * `interrupted` and `lost` follows. A job that ends without an attempt has none: one that was cancelled
   * before, or whose workers have all died.
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
  /** A job has ended because its handler asked for that, or somebody from outside (`queue.cancel`). */
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
  /** A stop has begun: nothing more is claimed, and so many handlers may end within `timeoutMs`. */
  stopping: [{ readonly running: number; readonly timeoutMs: number }];
  /** The worker has stopped: nothing of it runs any more. */
  stopped: [];
}

type Listener<K extends keyof WorkerEvents> = (...args: WorkerEvents[K]) => void;

/** The events of one worker. Each of its listeners is called on its own: one that throws harms no other. */
export class WorkerEmitter {
  readonly #listeners = new Map<keyof WorkerEvents, Set<Listener<never>>>();

  on<K extends keyof WorkerEvents>(event: K, listener: Listener<K>): void {
    this.#listeners.set(event, this.#of(event).add(listener));
  }

  off<K extends keyof WorkerEvents>(event: K, listener: Listener<K>): void {
    this.#of(event).delete(listener);
  }

  emit<K extends keyof WorkerEvents>(event: K, ...args: WorkerEvents[K]): void {
    const listeners = this.#listeners.get(event) as Set<Listener<K>> | undefined;
    if (listeners === undefined || listeners.size === 0) {
      // An error that nobody hears of would be worse than a line on stderr.
      if (event === 'error') print(...(args as WorkerEvents['error']));
      return;
    }
    const told = withoutParameters(event, args);
    // A copy: a listener may add and remove listeners.
    for (const listener of [...listeners]) {
      try {
        listener(...told);
      } catch (error) {
        if (event === 'error') print({ error, during: 'a listener of its errors' });
        else this.emit('error', { error, during: `a listener of '${event}'` });
      }
    }
  }

  /** A map cannot say that the listeners under a key are that key's; `on` is the only way in. */
  #of<K extends keyof WorkerEvents>(event: K): Set<Listener<K>> {
    return (this.#listeners.get(event) ?? new Set()) as Set<Listener<K>>;
  }
}

/** The parameters of a failed query may be outputs and errors of jobs, which nobody expects in a log. */
function withoutParameters<K extends keyof WorkerEvents>(event: K, args: WorkerEvents[K]): WorkerEvents[K] {
  if (event !== 'error' && event !== 'polling') return args;
  // These two events hold an `error`, and are the same without what is around it.
  const [told] = args as WorkerEvents['error' | 'polling'];
  return [{ ...told, error: withoutQuery(told.error) }] as WorkerEvents[K];
}

/** What may be printed: anything else on an error (a row, a URL with its password) stays out of the log. */
function print({ error, during }: WorkerEvents['error'][0]): void {
  console.error('drizzle-queue worker:', { during, ...describeThrown(error) });
}
