import type { Executor } from '../sql/executor.ts';

/** How to make a database that a worker can use. */
export const POOL = 'drizzle({ client: new Pool({ connectionString }) })';

/**
 * Whether a database sends all its statements on one connection that transactions do not have to themselves:
 * a client of node-postgres or of a driver modelled on it, also one that a pool has given out. What is sent
 * while a transaction is open there becomes part of it. A pool of one, `max: 1` of postgres.js, and PGlite
 * let other statements wait for the end of a transaction.
 *
 * `false` also where the driver does not show it.
 */
export function isSingleClient(db: Executor): boolean {
  const client: unknown = Reflect.get(Object(db), '$client');
  if (typeof client !== 'object' || client === null) return false;
  const { connect, Client, connectionParameters } = client as Readonly<Record<string, unknown>>;
  // A client has its parsed settings; a pool names the class of its clients.
  const hasSettings = typeof connectionParameters === 'object' && connectionParameters !== null;
  return hasSettings && typeof connect === 'function' && typeof Client !== 'function';
}

/**
 * Refuses what a worker cannot work with although it is a Drizzle database or transaction.
 *
 * @throws TypeError for a transaction, and for a single client
 */
export function checkPool(caller: string, db: Executor): void {
  if (typeof Reflect.get(Object(db), 'rollback') === 'function') {
    throw new TypeError(
      `${caller}(db, …) takes a database, but got a transaction: a rollback would undo what the worker ` +
        'writes, and other workers would not see it. Pass the db on which the transaction was begun',
    );
  }
  if (!isSingleClient(db)) return;
  throw new TypeError(
    `${caller}(db, …): this database is a single client, but a worker needs a connection pool. Its ` +
      "statements would become part of the handlers' transactions, and be rolled back with them. " +
      `Use ${POOL}`,
  );
}
