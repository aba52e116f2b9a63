import type { Database } from '../queries/executor.ts';
import { listenOf } from './detect.ts';
import type { Listen } from './listen.ts';

/** The drivers of which it was said: an app may have many workers, and one line is enough. */
const said = new Set<string>();

/**
 * How the driver under a database listens. Where it cannot, `undefined`, and one warning for each driver and process: a worker that polls
 * for no reason that anybody knows of would only be found slow.
 */
export function listenOrPoll(db: Database): Listen | undefined {
  const listen = listenOf(db);
  if (listen === undefined) say(driverOf(db));
  return listen;
}

function say(driver: string): void {
  if (said.has(driver)) return;
  said.add(driver);
  process.emitWarning(
    `${driver} cannot listen for notifications, so its workers poll, every pollIntervalMs; listen: false says that this is meant`,
    'DrizzleQueueWarning',
  );
}

const ENTITY_KIND = Symbol.for('drizzle:entityKind');

/** What Drizzle calls the database's class, such as `NeonHttpDatabase`; it survives a minifier, as the class's name does not. */
function driverOf(db: Database): string {
  return String(Reflect.get(Object(db).constructor, ENTITY_KIND) ?? 'This database');
}
