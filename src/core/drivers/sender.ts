import type { Database } from '../sql/executor.ts';
import { pooledSender } from './send-by-pool.ts';
import { postgresJsSender } from './send-by-postgres-js.ts';
import type { Sender } from './sent-statement.ts';
import { withoutLogger } from './without-logger.ts';

/**
 * How statements are sent through this database, past the app's logger. An `execute` that the app has put in
 * front of Drizzle's is used, except for what is prepared.
 *
 * @param onRefused called once, with the error, when the server refuses prepared statements
 */
export function senderOf(db: Database, onRefused: (error: unknown) => void): Sender {
  // A database with replicas is a plain object around this one.
  const primary: unknown = Reflect.get(db, '$primary') ?? db;
  const client: unknown = Reflect.get(db, '$client');
  const own = Object.hasOwn(Object(primary), 'execute');
  const silent = own ? db : withoutLogger(primary as Database);
  return (
    postgresJsSender(silent, client, onRefused) ??
    (own ? undefined : pooledSender(client)) ??
    plainSender(silent)
  );
}

/** By Drizzle alone, on drivers that hand out no connections. */
function plainSender(db: Database): Sender {
  return {
    prepares: false,
    send: (query) => ({ answer: db.execute(query), abandon: () => true }),
    heal: async () => undefined,
  };
}
