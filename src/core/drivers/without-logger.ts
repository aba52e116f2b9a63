import type { Executor } from '../sql/executor.ts';

const SILENT = { logQuery: () => undefined };

/**
 * A view of a Drizzle database that sends by the same session and client, past the app's logger: an idle
 * worker asks several times a second, and the app's own queries would be lost among that. All drivers of both
 * majors take the logger from their session.
 */
export function withoutLogger<T extends Executor>(db: T): T {
  const session: unknown = Reflect.get(db, 'session');
  if (typeof session !== 'object' || session === null || !('logger' in session)) return db;
  const options: unknown = Reflect.get(session, 'options');
  const silent: object = Object.create(session, {
    logger: { value: SILENT },
    // From these the session of a transaction is made.
    options: { value: { ...Object(options), logger: SILENT } },
  });
  return Object.create(db, { session: { value: silent } });
}
