import { checkOptions, namesOf } from '../../job/known-options.ts';
import { checkBoolean, checkDurationMs, MAX_TIMER_MS } from '../../job/limits.ts';
import { shown } from '../../job/shown.ts';
import { type Executor, NO_DATABASE } from '../../sql/executor.ts';

/** The options of {@link Queue.waitFor}. */
export interface WaitOptions {
  /** How long to wait, 1 to 2,147,483,647 (24 days). @default 30_000 (30 s) */
  timeoutMs?: number | undefined;
  /** Ends the wait, which then rejects with the signal's reason. The job goes on. */
  signal?: AbortSignal | undefined;
  /**
   * Whether to listen for the end of a job that was enqueued with the same option. It takes one connection
   * beside the pool, for all who wait; where there can be none, the wait polls as it does without.
   * @default false
   */
  awaited?: boolean | undefined;
}

const OPTIONS = namesOf<WaitOptions>({ timeoutMs: true, signal: true, awaited: true });
const DEFAULT_TIMEOUT_MS = 30_000;

/** The same with their defaults. */
export interface CheckedWait {
  readonly timeoutMs: number;
  readonly signal: AbortSignal | undefined;
  readonly awaited: boolean;
}

/** @throws RangeError | TypeError */
export function checkWaitOptions(method: string, options: WaitOptions): CheckedWait {
  const {
    timeoutMs = DEFAULT_TIMEOUT_MS,
    signal,
    awaited = false,
  } = checkOptions(`${method}: options`, options, OPTIONS);
  if (signal !== undefined && !(signal instanceof AbortSignal)) {
    throw new TypeError(`${method}: signal must be an AbortSignal, got ${shown(signal)}`);
  }
  checkBoolean(`${method}: awaited`, awaited);
  return { timeoutMs: checkDurationMs(`${method}: timeoutMs`, timeoutMs, 1, MAX_TIMER_MS), signal, awaited };
}

/**
 * Refuses to wait inside a transaction. A job that it enqueued begins at its commit, so never. Under
 * `REPEATABLE READ` it never sees another's end either. However it ends, it holds a connection and an old
 * snapshot meanwhile, behind which nothing is vacuumed.
 *
 * @throws TypeError
 */
export function checkNoTransaction(method: string, db: Executor): void {
  if (typeof db?.execute !== 'function') throw new TypeError(NO_DATABASE);
  if (!('rollback' in db)) return;
  throw new TypeError(
    `${method} cannot wait inside a transaction: a job that the transaction enqueued starts after its ` +
      'commit, and waiting would hold a connection and its snapshot. ' +
      'Wait after the commit, with the database itself',
  );
}
