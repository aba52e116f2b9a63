/** The options of {@link Queue.stats}. */
export interface StatsOptions {
  /**
   * Over how many of the last minutes rates, percentiles and the timeline go, 1–43,200. Up to 120 they come
   * minute by minute, beyond that hour by hour, from the beginning of the hour in which they begin. Needs
   * `createQueue({ metrics })`.
   * @default 15
   */
  minutes?: number | undefined;
}

/**
 * How good a count is. `exact`: counted. `at-least`: counting stopped at a bound; there are as many or more.
 * `estimated`: from the planner's statistics, which may be off by any factor. `unknown`: not even these could
 * be asked in time, since the table is locked; the counts are 0.
 */
export type Precision = 'exact' | 'at-least' | 'estimated' | 'unknown';

/** How many live jobs there are, by state. */
export interface LiveCounts {
  /** May run now. */
  readonly due: number;
  /** Of those that are due: in groups, so limits of their group may hold them up. */
  readonly grouped: number;
  /** Held by a worker. */
  readonly running: number;
  /** Their time has not come. */
  readonly scheduled: number;
  /** Parked without a time, such as jobs that wait for jobs. */
  readonly waiting: number;
  /**
   * For how long the oldest due job has been due, in milliseconds; `undefined` when none is due. Where `due`
   * is more than 0, or nothing is known (`precision: 'unknown'`), `undefined` means that it is not known.
   */
  readonly oldestDueMs: number | undefined;
  readonly precision: Precision;
}

/** Whether the age of the oldest due job is unknown because the look timed out. */
export function isOldestUnknown({
  due,
  oldestDueMs,
  precision,
}: Pick<LiveCounts, 'due' | 'oldestDueMs' | 'precision'>): boolean {
  return oldestDueMs === undefined && (due > 0 || precision === 'unknown');
}

/** The live jobs of one queue. */
export interface QueueCounts extends LiveCounts {
  readonly queue: string;
  /** Since when the queue is paused; `undefined` when it is not. As last read, while that table is locked. */
  readonly pausedAt: Date | undefined;
  /** How many registered workers serve it; as last read, while their table is locked. */
  readonly workers: number;
}

/** The live and the discarded jobs of one kind in one queue. */
export interface KindCounts extends LiveCounts {
  readonly queue: string;
  readonly kind: string;
  /** How many registered workers serve the queue and have a handler for the kind. */
  readonly workers: number;
  /** How many of the newest results (see {@link QueueStats.results}) are discarded jobs. */
  readonly discarded: number;
}

/** The middle and the upper end of some durations, in milliseconds, within 20 % of the true ones. */
export interface Percentiles {
  /** How many durations these are. */
  readonly count: number;
  readonly meanMs: number;
  readonly p50Ms: number;
  readonly p95Ms: number;
  readonly p99Ms: number;
}

/** How many attempts ended, and how. */
export interface OutcomeCounts {
  readonly completed: number;
  /** Failed, with attempts left. */
  readonly retried: number;
  readonly discarded: number;
  readonly cancelled: number;
  readonly snoozed: number;
  /** Given back, because their worker stopped. */
  readonly interrupted: number;
  /** No longer held by their worker when they ended. */
  readonly lost: number;
}

/** What workers have reported of one kind in one queue. */
export interface KindRates extends OutcomeCounts {
  readonly queue: string;
  readonly kind: string;
  /** All outcomes together, per minute. */
  readonly perMinute: number;
  /** From due to begun; `undefined` when nothing began. */
  readonly wait: Percentiles | undefined;
  /** From begun to ended; `undefined` when nothing ended. */
  readonly run: Percentiles | undefined;
}

/** What workers have reported of one kind in one queue, in one minute or hour. */
export interface TimelinePoint extends KindRates {
  /** The beginning of the minute or hour, by the database's clock. */
  readonly at: Date;
}

/** What workers have reported of all queues and kinds, in one minute or hour. */
export type TotalPoint = Omit<TimelinePoint, 'queue' | 'kind'>;

/** What workers have reported in the last minutes. */
export interface QueueRates {
  /**
   * The time that it covers, up to the time of the counting: as many minutes as were asked for, or by hour up
   * to 60 more. Workers report once a minute.
   */
  readonly minutes: number;
  /** By queue and kind. */
  readonly kinds: readonly KindRates[];
  /** How long each point of the timeline lasts: a minute, or an hour. */
  readonly stepMs: number;
  /** By time, queue and kind; only where something ended. */
  readonly timeline: readonly TimelinePoint[];
  /** By time: all queues and kinds together. */
  readonly totals: readonly TotalPoint[];
}

/** What {@link Queue.stats} returns: figures for dashboards and alerts. */
export interface QueueStats {
  /** When it was counted, by the database's clock: up to ten minutes ago. */
  readonly countedAt: Date;
  /** How long the database took to count. */
  readonly tookMs: number;
  /** Whether a count is not exact: counting everything would have taken too long. */
  readonly estimated: boolean;
  /** By name: queues with live jobs, with a worker, or paused. */
  readonly queues: readonly QueueCounts[];
  /**
   * How many workers are registered. While another transaction locks their table: as many as were last read,
   * and 0 before that. The vitals that depend on it are then `unknown`.
   */
  readonly workers: number;
  /** By queue and name: kinds with live jobs, as far as they could be counted, or discarded ones. */
  readonly kinds: readonly KindCounts[];
  /** The results among which {@link KindCounts.discarded} counts: the newest. */
  readonly results: {
    readonly read: number;
    /** Whether there are older ones. */
    readonly truncated: boolean;
    /** When the oldest of them finished; `undefined` when there is none. */
    readonly since: Date | undefined;
  };
  /**
   * How many jobs have failed and wait for another attempt, due or scheduled, by queue and kind; `undefined`
   * when they could not be counted in time. Of the jobs that have failed 10,000 are read; `isLeast` says that
   * there may be more.
   */
  readonly retrying:
    | {
        readonly kinds: readonly { readonly queue: string; readonly kind: string; readonly jobs: number }[];
        readonly isLeast: boolean;
      }
    | undefined;
  /** `undefined` unless the queue has `metrics`, and if these could not be read: in time, or at all. */
  readonly rates: QueueRates | undefined;
}
