import type { Database } from '../sql/executor.ts';
import { hasOneConnection, listenOf } from './detect.ts';
import type { Listen } from './listen.ts';

/** What was said, of which driver: an app may have many workers, and one line is enough. */
const said = new Set<string>();

/**
 * How the driver under a database listens. Where it cannot, `undefined`, and one warning for each driver and process: a worker that polls
 * for no reason that anybody knows of would only be found slow. The same where no session is possible on the connection that listens:
 * it would be found out after a crash.
 */
export function listenOrPoll(db: Database): Listen | undefined {
  const listen = listenOf(db);
  if (listen === undefined) {
    say(
      `${driverOf(db)} cannot listen for notifications, so its workers poll, every pollIntervalMs; listen: false says that this is meant`,
    );
    return undefined;
  }
  if (hasOneConnection(db)) return listen;
  return (channel, events, signal) =>
    listen(
      channel,
      {
        ready: (runner) => {
          if (runner === undefined) sayNoSession(driverOf(db));
          events.ready(runner);
        },
        notify: (payload) => events.notify(payload),
      },
      signal,
    );
}

function sayNoSession(driver: string): void {
  say(
    `${driver} runs no statements on the connection that listens, so its workers hold no session lock: others know by the heartbeat ` +
      'alone that one has died, after silentMs (30 s) instead of a few seconds',
  );
}

function say(warning: string): void {
  if (said.has(warning)) return;
  said.add(warning);
  process.emitWarning(warning, 'DrizzleQueueWarning');
}

const ENTITY_KIND = Symbol.for('drizzle:entityKind');

/** What Drizzle calls the database's class, such as `NeonHttpDatabase`; it survives a minifier, as the class's name does not. */
function driverOf(db: Database): string {
  return String(Reflect.get(Object(db).constructor, ENTITY_KIND) ?? 'This database');
}
