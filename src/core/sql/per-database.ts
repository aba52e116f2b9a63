import type { QueueTables } from '../schema/create-queue-tables.ts';
import type { Executor } from './executor.ts';

/** Returns the one `T` of a database object and tables, kept for as long as the app keeps both. */
export function perDatabase<T>(
  make: (db: Executor, tables: QueueTables) => T,
): (db: Executor, tables: QueueTables) => T {
  const made = new WeakMap<Executor, WeakMap<QueueTables, T>>();
  return (db, tables) => {
    const ofDb = made.get(db) ?? new WeakMap<QueueTables, T>();
    made.set(db, ofDb);
    const one = ofDb.get(tables) ?? make(db, tables);
    ofDb.set(tables, one);
    return one;
  };
}
