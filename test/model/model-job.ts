/** A job as the model knows it, and what is done to it. */

export type FinalState = 'completed' | 'discarded' | 'cancelled';

export interface ModelJob {
  readonly id: number;
  readonly queue: string;
  readonly kind: string;
  priority: number;
  maxAttempts: number;
  readonly uniqueKey: string | null;
  /** The key that it has until its first claim. */
  waitingKey: string | null;
  /** `null` in a queue without groups, or of one that was enqueued by a process that knows of none. */
  group: string | null;
  /** 1 unless it has one. */
  cost: number;
  /** `live`: in `queue_jobs`. `gone`: completed without a kept result, or its result was pruned. */
  state: 'live' | FinalState | 'gone';
  /** Microseconds since 1970, or a delay from the time of the statement that has just been run. */
  runAt: number | { readonly delayMs: number };
  attempt: number;
  fence: number;
  workerId: number | null;
  /** Whether the attempt for which it was last claimed has begun. */
  begun: boolean;
  /** The attempt of the last kept error, 0 without one. */
  lastRecorded: number;
  /** The names of the kept errors. */
  errors: string[];
  /** Whether somebody has asked for its end while it ran. */
  cancelRequested: boolean;
  /** Whether what it may be about to wait for has ended since its attempt began. */
  unparked: boolean;
  /** Whether it was discarded once, and put back with its history. */
  redriven: boolean;
}

/** A claim of one job, kept by whoever made it, even when it has long lost the job. */
export interface ModelAttempt {
  readonly id: number;
  readonly queue: string;
  /** `null` in `runNext`, where a row lock is the hold. */
  readonly workerId: number | null;
  readonly fence: number;
  readonly attempt: number;
}

/** Who claims what, at which moment. */
export interface ModelClaim {
  readonly workerId: number | null;
  readonly queue: string;
  readonly kinds: readonly string[];
  readonly limit: number;
  readonly sweep: boolean;
  /** How many of the first begin at once, or those before the first that may kill its worker; `undefined`: all. */
  readonly beginning?:
    | number
    | { readonly atMost: number; readonly provenKinds: readonly string[] }
    | undefined;
  readonly nowUs: number;
}

export type Ending =
  | 'complete'
  | 'fail'
  | 'fail for good'
  | 'snooze'
  | 'cancel'
  | 'interrupt'
  /** Parked: for something else, without a limit or for a time. */
  | 'wait'
  | 'wait for a time';

/** How long a failed job waits, a snoozed one, and one that is parked for a time. */
export const BACKOFF_MS = 3_600_000;
export const SNOOZE_MS = 7_200_000;
export const WAIT_MS = 10_800_000;

/** The kind whose completed jobs leave no result. */
export const KIND_WITHOUT_RESULT = 'forgotten';
/** The kind whose completed jobs leave a result without the payload. */
export const KIND_OF_OUTCOMES = 'outcome';

/** Nothing interrupts `runNext`, and its handlers do not wait. */
export function endingOfRunNext(ending: Ending): Ending {
  return ending === 'interrupt' || ending === 'wait' || ending === 'wait for a time' ? 'complete' : ending;
}

/** Whether a crash must not spend the attempt before it begins: the last, or one after an attempt that left no word. */
export function isPrecious({ attempt, maxAttempts, lastRecorded }: ModelJob): boolean {
  return (
    attempt === maxAttempts || (attempt < maxAttempts && attempt - 1 > recordedIn(attempt, lastRecorded))
  );
}

/** An error of this attempt or a later one is from before a redrive. */
function recordedIn(attempt: number, lastRecorded: number): number {
  return lastRecorded < attempt ? lastRecorded : 0;
}

/** Whether others may begin with it: at most one attempt before it has left no word, and this is not the last then. */
export function mayBeginWithOthers({ attempt, maxAttempts, lastRecorded }: ModelJob): boolean {
  const withoutWord = attempt > maxAttempts ? 0 : attempt - 1 - recordedIn(attempt, lastRecorded);
  return withoutWord <= (attempt < maxAttempts ? 1 : 0);
}

export function known(runAt: ModelJob['runAt']): number {
  if (typeof runAt === 'number') return runAt;
  throw new Error('the time was not read back from the database');
}

/** The order in which jobs are claimed. */
export function inOrder(a: ModelJob, b: ModelJob): number {
  return a.priority - b.priority || known(a.runAt) - known(b.runAt) || a.id - b.id;
}
