import type { Database } from '../sql/executor.ts';
import type { Listen } from './listen.ts';
import { listenByNodePostgres } from './listen-node-postgres.ts';
import { listenByPGlite, type PGliteClient } from './listen-pglite.ts';
import { listenByPostgresJs, type PostgresJsClient } from './listen-postgres-js.ts';

/**
 * How the driver under a Drizzle database listens, or `undefined` when it cannot (HTTP, proxies). Found by what `db.$client`
 * looks like: to import a driver in order to compare its class would load it.
 */
export function listenOf(db: Database): Listen | undefined {
  // Whether it is a database at all is for the first statement to find.
  const client: unknown = Reflect.get(Object(db), '$client');
  // postgres.js and Bun's SQL are tagged templates, so functions; Neon's over HTTP is one too, without `listen`.
  if (typeof client === 'function') {
    // What has a `listen` is one of the two.
    return 'listen' in client ? listenByPostgresJs(client as unknown as PostgresJsClient) : undefined;
  }
  if (typeof client !== 'object' || client === null) return undefined;
  // The objects with a `listen` are PGlite's.
  if ('listen' in client) return listenByPGlite(client as PGliteClient);
  return listenByNodePostgres(client);
}

/** Whether the driver has one connection for everything, as PGlite: its workers share it, and none can die without the database. */
export function hasOneConnection(db: Database): boolean {
  const client: unknown = Reflect.get(Object(db), '$client');
  return typeof client === 'object' && client !== null && 'listen' in client;
}
