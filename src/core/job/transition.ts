import { NonRetryableError, QueueError } from '../../errors.ts';
import type { FinalState } from '../schema/queue-results.ts';
import { type Backoff, exponentialBackoff } from './backoff.ts';
import type { KeepResult } from './definition.ts';
import { describeError, type ErrorRecord, storable } from './describe-error.ts';
import type { Outcome } from './outcome.ts';

/** One year: a backoff that says more is a mistake, such as a power that has grown too large. */
export const MAX_BACKOFF_MS = 365.25 * 24 * 3_600_000;

/** The row change that an outcome calls for. */
export type Transition = Finish | Reschedule | Park;

/** The job leaves `queue_jobs`; a row in `queue_results` says what became of it, if it is to be kept. */
export interface Finish {
  readonly type: 'finish';
  readonly state: FinalState;
  /** JSON text; `null` unless completed. */
  readonly output: string | null;
  /** The error of this attempt, to be added with the database's time. */
  readonly error: ErrorRecord | null;
  readonly keepResult: KeepResult;
}

/** The job stays, unheld, and is due later. */
export interface Reschedule {
  readonly type: 'reschedule';
  /** Milliseconds from now by the database's clock; `null` leaves its place in the queue as it was. */
  readonly delayMs: number | null;
  readonly attempt: number;
  readonly error: ErrorRecord | null;
  /** Set where its handler was not called: what it waits for before it begins may still make it due. */
  readonly unbegun?: boolean;
}

/** The job stays, unheld, and waits: it is due when what it waits for unparks it. */
export interface Park {
  readonly type: 'park';
  /** Milliseconds from now, by the database's clock, until it is due all the same; `null`: no limit. */
  readonly delayMs: number | null;
  /** Waiting spends no attempt, so this is one less than the attempt that ends. */
  readonly attempt: number;
  readonly error: null;
}

export interface AttemptTiming {
  /** When it began, by the database's clock; `undefined` when it did not, or that is not known. */
  readonly beganAt: Date | undefined;
}

/** What calls the backoff of an app, which may do as it likes. */
export interface BackoffCaller {
  /** Returns what the backoff returns, and throws what it throws. */
  callBackoff(attempt: number, error: unknown): number;
}

export interface AttemptFacts {
  /** The attempt that has ended, counted from 1; 1 as well after progress that is not repeated. */
  readonly attempt: number;
  readonly maxAttempts: number;
  readonly backoff: Backoff;
  /** @default the backoff is called as it is */
  readonly caller?: BackoffCaller | undefined;
  /** Of a completed job; the others keep all of theirs. */
  readonly keepResult: KeepResult;
  /** Asked only where an error is recorded, since most jobs have none. */
  readonly timing?: AttemptTiming | undefined;
  /** Why the job's end was requested (`queue.cancel`); `undefined` when it was not. */
  readonly cancelReason?: string | undefined;
  /** Whether its handler was not called. @default it was */
  readonly unbegun?: boolean;
  /** In how many milliseconds it is too old, so that it is due then; `undefined`: never. */
  readonly untilDeadlineMs?: number | undefined;
}

/** An outcome that says by itself what becomes of the job. */
export type Verdict = Exclude<Outcome, { readonly type: 'committed' }>;

/**
 * What an outcome means for a job that its worker still holds, given what else is known about the attempt.
 *
 * | outcome | the job's end is not requested | it is requested |
 * |---|---|---|
 * | completed | completed | completed: the work is done |
 * | committed | failed: held, so its transaction rolled back | cancelled |
 * | failed, snoozed, waiting, interrupted | the same | cancelled |
 * | cancelled | cancelled | cancelled, for the handler's own reason |
 */
export function verdictOn(outcome: Outcome, { cancelReason }: Pick<AttemptFacts, 'cancelReason'>): Verdict {
  if (outcome.type === 'completed' || outcome.type === 'cancelled') return outcome;
  if (cancelReason !== undefined) return { type: 'cancelled', reason: cancelReason };
  if (outcome.type !== 'committed') return outcome;
  const error = new QueueError('The transaction in which the handler called complete(tx) did not commit');
  return { type: 'failed', error };
}

export function cancellation(attempt: number, reason: string): ErrorRecord {
  return { attempt, name: 'Cancelled', message: storable(reason) };
}

/**
 * The whole state machine of a held job: which row change an outcome calls for. It is the only place that
 * decides it, without I/O and without a clock, so that every case can be tested. After a failure it calls the
 * backoff, which may be the app's, and by default uses chance.
 *
 * | {@link verdictOn} the outcome | row change |
 * |---|---|
 * | completed | finish as `completed` |
 * | failed, attempts left | reschedule after the backoff; the attempt is spent |
 * | failed, no attempt left, or a NonRetryableError | finish as `discarded` |
 * | snoozed | reschedule after its delay; the attempt is given back |
 * | waiting | park; the attempt is given back |
 * | cancelled | finish as `cancelled` |
 * | interrupted | reschedule where it was; the attempt is given back |
 */
export function transitionFor(outcome: Outcome, facts: AttemptFacts): Transition {
  const { attempt, keepResult } = facts;
  const verdict = verdictOn(outcome, facts);
  switch (verdict.type) {
    case 'completed':
      return {
        type: 'finish',
        state: 'completed',
        output: verdict.output,
        error: null,
        keepResult,
      };
    case 'failed': {
      const error = { ...describeError(verdict.error, attempt), ...startOf(facts) };
      if (isNonRetryable(verdict.error) || attempt >= facts.maxAttempts) {
        return { type: 'finish', state: 'discarded', output: null, error, keepResult: true };
      }
      return {
        type: 'reschedule',
        delayMs: inTime(backoffDelayMs(facts, verdict.error), facts),
        attempt,
        error,
        ...unbegun(facts),
      };
    }
    case 'snoozed':
      return {
        type: 'reschedule',
        delayMs: inTime(verdict.delayMs, facts),
        attempt: attempt - 1,
        error: null,
        ...unbegun(facts),
      };
    case 'waiting':
      return { type: 'park', delayMs: inTime(verdict.delayMs, facts), attempt: attempt - 1, error: null };
    case 'cancelled':
      return {
        type: 'finish',
        state: 'cancelled',
        output: null,
        error: { ...cancellation(attempt, verdict.reason), ...startOf(facts) },
        keepResult: true,
      };
    case 'interrupted':
      return { type: 'reschedule', delayMs: null, attempt: attempt - 1, error: null, ...unbegun(facts) };
  }
}

function unbegun({ unbegun }: AttemptFacts): Pick<Reschedule, 'unbegun'> {
  return unbegun === true ? { unbegun } : {};
}

/** At its deadline at the latest. */
function inTime<T extends number | null>(delayMs: T, { untilDeadlineMs }: AttemptFacts): number | T {
  if (untilDeadlineMs === undefined) return delayMs;
  return Math.min(delayMs ?? Number.POSITIVE_INFINITY, Math.max(0, Math.ceil(untilDeadlineMs)));
}

/** When the attempt began, in an error as it is stored. */
function startOf({ timing }: AttemptFacts): Pick<ErrorRecord, 'startedAt'> {
  const beganAt = timing?.beganAt;
  return beganAt === undefined ? {} : { startedAt: beganAt.toISOString() };
}

/** Anything can be thrown, even a proxy that throws when it is asked what it is. */
function isNonRetryable(thrown: unknown): boolean {
  try {
    return thrown instanceof NonRetryableError;
  } catch {
    return false;
  }
}

const fallback = exponentialBackoff();

/** The user's code may throw or return nonsense, and the job must still be settled. */
function backoffDelayMs({ attempt, backoff, caller }: AttemptFacts, error: unknown): number {
  try {
    const delayMs = caller === undefined ? backoff(attempt, error) : caller.callBackoff(attempt, error);
    if (typeof delayMs === 'number' && delayMs >= 0) return Math.min(Math.round(delayMs), MAX_BACKOFF_MS);
  } catch {
    // Falls through: the attempt's own error is worth more in the history than the backoff's.
  }
  return fallback(attempt, error);
}
