import type { Database, Transaction } from './executor.ts';
import { isPool, type TakenClient, take } from './pooled-client.ts';

/**
 * Runs a function in a transaction of the database, or in a savepoint of a transaction, as `db.transaction`
 * does. All transactions that the library begins are begun here.
 *
 * On a pool of node-postgres, or of neon-serverless, the connection is given back even if `begin` fails, and
 * one that breaks does not end the process. drizzle-orm 0.45 itself loses a connection for good with each
 * `begin` that fails ([#6241](https://github.com/drizzle-team/drizzle-orm/issues/6241)), so that crashes of
 * the server emptied the pools of workers, and adds no listener for the errors of a connection.
 *
 * @throws whatever `db.transaction` throws
 */
export async function transact<T>(db: Database, run: (tx: Transaction) => Promise<T>): Promise<T> {
  // A database with replicas is a plain object around this one.
  const primary: Database = Reflect.get(db, '$primary') ?? db;
  const session: unknown = Reflect.get(primary, 'session');
  const pool: unknown = Reflect.get(Object(session), 'client');
  if (!isPool(pool)) return await db.transaction(run);
  let taken: TakenClient | undefined;
  const connect = async () => {
    taken = await take(pool);
    // Drizzle gives it back by this. The pool replaces it at the next checkout.
    taken.client.release = taken.release;
    return taken.client;
  };
  const noted: object = Object.create(pool, { connect: { value: connect } });
  const view: Database = Object.create(primary, {
    session: { value: Object.create(Object(session), { client: { value: noted } }) },
  });
  try {
    return await view.transaction(run);
  } catch (error) {
    taken?.release(error);
    throw error;
  }
}
