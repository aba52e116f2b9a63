import { sqlStateOf } from '../../sql/executor.ts';

const CANCELLED_STATEMENT = '57014';
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
  if (sqlState === undefined) return true;
  return ABOUT_THE_SERVER.test(sqlState) && sqlState !== CANCELLED_STATEMENT;
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
