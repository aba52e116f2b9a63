/** What {@link Queue.vitals} watches; the guide "Metrics" explains each code. */
export type VitalCode =
  /** A due job has waited long, in a queue that is not paused. In milliseconds. */
  | 'oldest-due'
  /** Jobs are due, and no worker that serves their queue has a handler for their kind. In milliseconds. */
  | 'kind-unserved'
  /** Discarded jobs among those that ended in the last 15 minutes. A ratio. */
  | 'discard-rate'
  /** Retries among the attempts of the last 15 minutes. A ratio. */
  | 'retry-rate'
  /** Jobs of a kind have failed and wait for another attempt, many beside those that complete. A count. */
  | 'jobs-retrying'
  /** Workers that have not been seen for long and are still registered. A count. */
  | 'workers-silent'
  /** Jobs whose workers died at them, twice or more. A count. */
  | 'workers-killed'
  /** Jobs that workers leave out, because the database refuses their claims. A count. */
  | 'claims-refused'
  /** A transaction keeps the server from removing dead rows. In milliseconds. */
  | 'oldest-snapshot'
  /** A replication slot does. The transactions that it is behind. */
  | 'slot-behind'
  /** Dead rows of `queue_jobs` that autovacuum has not removed. A count. */
  | 'dead-rows'
  /** How many transactions old the oldest row of the queue's tables may be. A count. */
  | 'transaction-age'
  /** A queue has been paused for long. In milliseconds. */
  | 'pause-forgotten';

/** One value that an alert can watch. */
export interface Vital {
  /** Stable, for programs. */
  readonly code: VitalCode;
  /**
   * `ok`, `warning` (look at it today), `error` (look at it now), or `unknown`: it could not be read, for
   * lack of rights, of metrics or of time, as `message` says.
   */
  readonly severity: 'ok' | 'warning' | 'error' | 'unknown';
  /** The queue that it is about; `undefined` when it is about all, or about the database. */
  readonly queue: string | undefined;
  readonly kind: string | undefined;
  /** The name of the worker that its message names. */
  readonly worker?: string;
  /** `undefined` only when unknown. */
  readonly value: number | undefined;
  readonly unit: 'ms' | 'ratio' | 'count';
  /** What was found. */
  readonly message: string;
  /** What to do about it, in one sentence; '' when it is ok. */
  readonly fix: string;
}

/** What {@link Queue.vitals} returns. */
export interface QueueVitals {
  /** By the database's clock. */
  readonly checkedAt: Date;
  /** The worst severity of all. */
  readonly severity: Vital['severity'];
  /**
   * The worst first. Each code is there at least once: for every queue or kind that is not `ok`, or else one
   * that says that all are.
   */
  readonly vitals: readonly Vital[];
}
