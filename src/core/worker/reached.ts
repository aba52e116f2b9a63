import { QueueError } from '../../errors.ts';
import { isPoolEnded } from '../drivers/ended-pool.ts';
import { describeThrown } from '../job/describe-error.ts';
import { hasLargeIds } from '../queries/presence/has-large-ids.ts';
import type { QueueTables } from '../schema/create-queue-tables.ts';
import { causesOf } from '../sql/causes-of.ts';
import { type Runner, sqlStateOf } from '../sql/executor.ts';
import { endsSession } from '../sql/is-loss.ts';
import { IDS_TOO_LARGE } from '../sql/new-job-id.ts';
import { isDistributed } from '../sql/statement-context.ts';

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

/**
 * Looks whether this node gives ids that a worker can work with; anywhere but on Citus it asks nothing.
 *
 * @throws QueueError where it does not
 */
export async function checkNode(db: Runner, tables: QueueTables): Promise<void> {
  if (!isDistributed(tables) || !(await hasLargeIds(db, tables))) return;
  throw new QueueError(
    `The worker cannot work through this node of the Citus cluster: ${IDS_TOO_LARGE}. ` +
      'Let it connect to the coordinator',
  );
}

/**
 * Passes a registration on. Citus writes the table of the workers, a reference table, on every node, so a
 * worker cannot register while one is down. It cannot work before: its peers would take its jobs over.
 *
 * @throws QueueError with the driver's error as its `cause`
 */
export async function registered<T>(registering: Promise<T>, tables: QueueTables): Promise<T> {
  try {
    return await registering;
  } catch (error) {
    if (!isDistributed(tables) || !isUnreachable(error)) throw error;
    throw new QueueError(
      'The worker cannot register while a node of the Citus cluster is down ' +
        `(${describeThrown(error).message.split('\n', 1)}): Citus writes queue_workers on all nodes. ` +
        'Start the worker again once all nodes are up',
      { cause: error },
    );
  }
}

function isUnreachable(error: unknown): boolean {
  const state = sqlStateOf(error);
  if (state !== undefined && REFUSED.test(state)) return true;
  if (isPoolEnded(error) || endsSession(error)) return true;
  for (const at of causesOf(error)) {
    if (/^(E[A-Z_]+|CONNECT_TIMEOUT|CONNECTION_\w+)$/.test(String(Reflect.get(at, 'code')))) return true;
  }
  return false;
}
