import type { Database, Executor } from '../sql/executor.ts';
import { hasOneConnection, listenOf } from './detect.ts';
import type { Listen } from './listen.ts';
import { warnOnce } from './warn-once.ts';

/**
 * How the driver under a database listens for a worker, or `undefined` when it cannot. Warns of that once per
 * driver and process, or the app would only find its workers slow. Warns, too, when the connection that
 * listens can hold no session, or the app would find out after a crash.
 */
export function listenOrPoll(db: Database): Listen | undefined {
  const listen = listenOf(db);
  if (listen === undefined) {
    warnOnce(
      `${driverOf(db)} cannot listen for notifications, so its workers poll every pollIntervalMs. ` +
        'Set listen: false to turn this warning off',
    );
    return undefined;
  }
  if (hasOneConnection(db)) return listen;
  return (channel, events, signal) =>
    listen(
      channel,
      {
        ready: (connection) => {
          if (connection === undefined) sayNoSession(driverOf(db));
          events.ready(connection);
        },
        notify: (payload) => events.notify(payload),
      },
      signal,
    );
}

/** The same for those who wait for the ends of jobs. */
export function listenOrLook(db: Executor): Listen | undefined {
  const listen = listenOf(db);
  if (listen === undefined) {
    warnOnce(
      `${driverOf(db)} cannot listen for notifications, so awaited: true has no effect. ` +
        'Waits poll up to twice a second',
    );
  }
  return listen;
}

function sayNoSession(driver: string): void {
  warnOnce(
    `${driver} runs no statements on the connection that listens, so its workers hold no session lock. ` +
      'A dead worker is noticed by its missing heartbeat, after silentMs (30 s) instead of a few seconds',
  );
}

const ENTITY_KIND = Symbol.for('drizzle:entityKind');

/** Drizzle's name of the database's class, such as `NeonHttpDatabase`; minifiers change the class's own. */
function driverOf(db: Executor): string {
  return String(Reflect.get(Object(db).constructor, ENTITY_KIND) ?? 'This database');
}
