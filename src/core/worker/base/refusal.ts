import { causesOf } from '../../sql/causes-of.ts';
import { sqlStateOf } from '../../sql/executor.ts';
import { endsSession } from '../../sql/is-loss.ts';

const CANCELLED_STATEMENT = '57014';
/** Cancelled, or above a limit such as `temp_file_limit`: a smaller statement may be accepted. */
const OF_THE_STATEMENT = /^(57014|53400)$/;
const LOCK_NOT_AVAILABLE = '55P03';

/**
 * SQLSTATE classes that say nothing about the rows of a statement: connection (08), transaction state (25),
 * authorization (28), database (3D), serialization (40), resources (53), intervention (57), system (58).
 */
const ABOUT_THE_SERVER = /^(08|25|28|3D|40|53|57|58)/;

/**
 * Whether the connection or the server failed, so that the same rows may succeed later; without a SQLSTATE it
 * is the driver's own error. Else it may lie in a row, also a timeout: half the rows take half the time.
 */
export function isAboutTheServer(error: unknown): boolean {
  const sqlState = sqlStateOf(error);
  if (sqlState === undefined || endsSession(error)) return true;
  return ABOUT_THE_SERVER.test(sqlState) && !OF_THE_STATEMENT.test(sqlState);
}

/** Whether it was cancelled: by an administrator, or because it took longer than `statement_timeout`. */
export function isCancelled(error: unknown): boolean {
  return sqlStateOf(error) === CANCELLED_STATEMENT;
}

/** Whether it failed because a lock was held for longer than the statement waits. */
export function isAboutLocks(error: unknown): boolean {
  return sqlStateOf(error) === LOCK_NOT_AVAILABLE;
}

/** Whether a refusal is about rights or tables (class 42), not the row: it may be accepted once fixed. */
export function isAboutAccess(error: unknown): boolean {
  return sqlStateOf(error)?.startsWith('42') ?? false;
}

/**
 * Whether a smaller claim may succeed: it was cancelled, or took more resources (53) or more of some bound
 * (54) than the server has; or the answer was too large for this process.
 */
export function isAboutSize(error: unknown): boolean {
  const sqlState = sqlStateOf(error);
  // Too many connections: nothing was claimed, however little it had asked for.
  if (sqlState === '53300') return false;
  if (sqlState !== undefined) return sqlState === CANCELLED_STATEMENT || /^5[34]/.test(sqlState);
  for (const at of causesOf(error)) {
    if (at instanceof RangeError || TOO_LARGE.test(String(Reflect.get(at, 'code')))) return true;
  }
  return false;
}

/** What Node.js says of a string or a buffer that would be larger than it allows. */
const TOO_LARGE = /^ERR_(STRING_TOO_LONG|BUFFER_TOO_LARGE|OUT_OF_RANGE|MEMORY_ALLOCATION_FAILED)$/;
/** A smaller statement at once would need the disk as well. */
const DISK_FULL = '53100';

/** Whether a smaller claim is worth a try at once: the server has said that it did nothing. */
export function mayBeSmaller(error: unknown): boolean {
  const sqlState = sqlStateOf(error);
  return sqlState !== undefined && sqlState !== DISK_FULL;
}
