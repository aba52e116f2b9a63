import { QueueError } from '../../errors.ts';
import { isPoolEnded } from '../drivers/ended-pool.ts';
import { describeThrown } from '../job/describe-error.ts';
import { sqlStateOf } from '../sql/executor.ts';

/** The server refuses this role, this database or any more connections, or is not up yet. */
const REFUSED = /^(08|28|3D000|53300|57P0)/;

/**
 * Passes a first statement on. Where the database cannot be reached, the error says so, and why: Drizzle's
 * own names the statement, and has the reason in its `cause` only.
 *
 * @throws QueueError with the driver's error as its `cause`
 */
export async function reached<T>(asking: Promise<T>): Promise<T> {
  try {
    return await asking;
  } catch (error) {
    if (!isUnreachable(error)) throw error;
    throw new QueueError(`The worker cannot reach its database: ${describeThrown(error).message}`, {
      cause: error,
    });
  }
}

function isUnreachable(error: unknown): boolean {
  const state = sqlStateOf(error);
  if (state !== undefined && REFUSED.test(state)) return true;
  if (isPoolEnded(error)) return true;
  for (let at = error; at instanceof Error; at = at.cause) {
    if (/^(E[A-Z_]+|CONNECT_TIMEOUT|CONNECTION_\w+)$/.test(String(Reflect.get(at, 'code')))) return true;
  }
  return false;
}
