import type { Database, Executor } from '../sql/executor.ts';
import type { Listen } from './listen.ts';
import { listenByNodePostgres } from './listen-node-postgres.ts';
import { listenByPGlite, type PGliteClient } from './listen-pglite.ts';
import { listenApartByPostgresJs, listenByPostgresJs, type PostgresJsClient } from './listen-postgres-js.ts';

/**
 * How the driver under a Drizzle database listens, or `undefined` when it cannot (HTTP, proxies). Detected
 * from the shape of `db.$client`, because importing a driver to compare its class would load it.
 */
export function listenOf(db: Executor): Listen | undefined {
  // The first statement finds out whether this is a database at all.
  const client: unknown = Reflect.get(Object(db), '$client');
  // postgres.js and Bun's SQL are tagged templates, so functions; so is Neon's over HTTP, without `listen`.
  if (typeof client === 'function') {
    // A function with a `listen` is one of the first two.
    return 'listen' in client ? listenByPostgresJs(client as unknown as PostgresJsClient) : undefined;
  }
  if (typeof client !== 'object' || client === null) return undefined;
  // Only PGlite's client is an object with a `listen`.
  if ('listen' in client) return listenByPGlite(client as PGliteClient);
  return listenByNodePostgres(client);
}

/** The same on a connection that no other listener shares, for a channel that no other listens to. */
export function listenApartOf(db: Executor): Listen | undefined {
  const client: unknown = Reflect.get(Object(db), '$client');
  return typeof client === 'function' && 'listen' in client
    ? listenApartByPostgresJs(client as unknown as PostgresJsClient)
    : listenOf(db);
}

/** Whether all share one connection, as with PGlite: no worker can die there without the database. */
export function hasOneConnection(db: Database): boolean {
  const client: unknown = Reflect.get(Object(db), '$client');
  return typeof client === 'object' && client !== null && 'listen' in client;
}
