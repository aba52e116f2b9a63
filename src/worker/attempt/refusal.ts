import { sqlStateOf } from '../../sql/executor.ts';

const CANCELLED_STATEMENT = '57014';
const LOCK_NOT_AVAILABLE = '55P03';

/**
 * SQLSTATE classes that say nothing about the rows of a statement: connection (08), transaction state (25),
 * authorization (28), database (3D), serialization (40), resources (53), intervention (57), system (58).
 * Without a SQLSTATE it is the driver's own error: the connection's.
 */
const ABOUT_THE_SERVER = /^(08|25|28|3D|40|53|57|58)/;

/**
 * Whether a statement failed for a reason of the connection or the server, so that the same rows may succeed
 * later. Everything else may lie in one of its rows, also a statement timeout: half of the rows take half of
 * the time.
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

/**
 * Whether a row that is refused alone is refused for what the role may do or for what the tables are (class
 * 42), and not for what is in it. The same outcome is accepted once somebody has put that right.
 */
export function isAboutAccess(error: unknown): boolean {
  return sqlStateOf(error)?.startsWith('42') ?? false;
}
