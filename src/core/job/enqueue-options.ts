import { namesOf } from './known-options.ts';

/** What one enqueue may override of the job's definition, or add to it, whatever its key. */
export interface JobSettings {
  /** 0–9, smaller first. @default the definition's */
  priority?: number | undefined;
  /** 1–10,000. @default the definition's */
  maxAttempts?: number | undefined;
  /** @default the definition's */
  queue?: string | undefined;
  /** A JSON object that travels with the job beside its payload: a trace id, a tenant. @default {} */
  metadata?: Readonly<Record<string, unknown>> | undefined;
  /** The job's group, 1–200 bytes, in a queue with groups: see `limitsIn`. @default the definition's */
  group?: string | undefined;
  /** What the job counts for in rates, a whole number, 1–10,000. @default the definition's, or 1 */
  cost?: number | undefined;
}

/** When the job is due, and who hears of its end. */
interface DueTime {
  /**
   * Whether the worker that ends the job notifies those who wait for it with the same option. Kept in the
   * metadata; of a `duplicate`, the live job's own counts. @default false
   */
  awaited?: boolean | undefined;
  /** Milliseconds until due, 0 to one century, by the database's clock. Not with `runAt`. @default 0 */
  delayMs?: number | undefined;
  /** When the job is due; a past time means now, before jobs that became due later. Not with `delayMs`. */
  runAt?: Date | undefined;
}

/** Waits until no call has come for a while. */
export interface Debounce {
  /** At most 2,000 bytes; of the kind and the queue, and of `replace` and `unique: 'waiting'` as well. */
  key: string;
  /** How long after the last call the job is due, 1 to one century. */
  delayMs: number;
  /** How long after the first call it is due at the latest, at least `delayMs`. @default without end */
  maxWaitMs?: number | undefined;
}

/** Lets one call through in each window of time. */
export interface Throttle {
  /** At most 2,000 bytes; of the kind and the queue, and of `unique: { forMs }` as well. */
  key: string;
  /** The window, which begins with the call that was let through: 1 to one century. */
  perMs: number;
  /** Whether the last call that is refused in a window becomes the job of the next one. @default false */
  trailing?: boolean | undefined;
}

/** Takes the place of the job that waits with this key. */
export interface Replace {
  /** At most 2,000 bytes; of the kind and the queue, and of `debounce` and `unique: 'waiting'` as well. */
  key: string;
  /** `keep`: the waiting job stays due when it is. @default it is due when a new job would be */
  runAt?: 'keep' | undefined;
}

interface NoUniqueKey {
  uniqueKey?: undefined;
  unique?: undefined;
}

interface NoRule {
  debounce?: undefined;
  throttle?: undefined;
  replace?: undefined;
}

/** The options of an enqueue that is one plain insert: those of {@link Queue.enqueueQuery}. */
export interface PlainEnqueueOptions extends JobSettings, DueTime, NoRule {
  /**
   * While a live job of this kind in this queue has this key, another is refused: the result is `duplicate`,
   * with the live job's id. At most 2,000 bytes; free again when the job has finished.
   */
  uniqueKey?: string | undefined;
  unique?: 'live' | undefined;
}

interface UniqueOptions extends Omit<PlainEnqueueOptions, 'unique'> {
  /**
   * How long `uniqueKey` refuses another job: as long as its job is `live`, or until a worker first claims
   * it (`waiting`). @default 'live'
   */
  unique?: 'live' | 'waiting' | undefined;
}

interface DebounceOptions extends JobSettings, NoUniqueKey, Omit<NoRule, 'debounce'> {
  /**
   * Calls with one key become one job, with all that the last one said, due `delayMs` after it. From its
   * first claim on a job is no longer meant: the next call makes another.
   */
  debounce: Debounce;
  delayMs?: undefined;
  runAt?: undefined;
  awaited?: boolean | undefined;
}

interface ReplaceOptions extends JobSettings, DueTime, NoUniqueKey, Omit<NoRule, 'replace'> {
  /** The job that waits with this key, unless a worker has claimed it, becomes this one, under its old id. */
  replace: Replace;
}

interface TrailingOptions extends JobSettings, DueTime, NoUniqueKey, Omit<NoRule, 'throttle'> {
  /** As with {@link LimitedEnqueueOptions}, but no call is lost: the last that is refused is made up for. */
  throttle: Throttle & { trailing: true };
}

/** What one enqueue may override or add to the job's definition. */
export type EnqueueOptions = UniqueOptions | DebounceOptions | ReplaceOptions | TrailingOptions;

interface ThrottleOptions extends JobSettings, DueTime, NoUniqueKey, Omit<NoRule, 'throttle'> {
  /** In each window of `perMs` at most one call becomes a job, whatever becomes of it. */
  throttle: Throttle & { trailing?: false | undefined };
}

interface PeriodOptions extends JobSettings, DueTime, NoRule {
  uniqueKey: string;
  /** For how long `uniqueKey` refuses another job, whatever becomes of this one: 1 to one century. */
  unique: { forMs: number };
}

/** With these an enqueue may be refused without saying for which job's sake: its result has no id. */
export type LimitedEnqueueOptions = ThrottleOptions | PeriodOptions;

/** All of them, as the checks read them. */
export interface GivenOptions extends JobSettings, DueTime {
  uniqueKey?: string | undefined;
  unique?: 'live' | 'waiting' | { forMs: number } | undefined;
  debounce?: Debounce | undefined;
  throttle?: Throttle | undefined;
  replace?: Replace | undefined;
}

const JOB_SETTINGS = {
  priority: true,
  maxAttempts: true,
  queue: true,
  metadata: true,
  group: true,
  cost: true,
} as const satisfies Record<keyof JobSettings, true>;

export const ENQUEUE_OPTIONS = namesOf<GivenOptions>({
  ...JOB_SETTINGS,
  delayMs: true,
  runAt: true,
  awaited: true,
  uniqueKey: true,
  unique: true,
  debounce: true,
  throttle: true,
  replace: true,
});

/** The options of a single enqueue: when its job is due, by which key, and who waits for it. */
export const OPTIONS_OF_ONE: ReadonlySet<string> = new Set(
  [...ENQUEUE_OPTIONS].filter((name) => !Object.hasOwn(JOB_SETTINGS, name)),
);
