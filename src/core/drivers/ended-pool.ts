import { causesOf } from '../sql/causes-of.ts';
import { type Executor, sqlStateOf } from '../sql/executor.ts';

/** The code of postgres.js for a statement that came after `client.end()`. */
const CONNECTION_ENDED = 'CONNECTION_ENDED';
/** What pools modelled on that of node-postgres say, and PGlite. */
const ENDED = /^(Cannot use a pool after calling end on the pool|PGlite is closed)$/;

/**
 * Whether a statement was refused, and never sent, because the app has ended its connection pool. It will be
 * refused for ever. Bun's SQL says the same of a connection that was lost, so there it is not known.
 */
export function isPoolEnded(error: unknown): boolean {
  try {
    if (sqlStateOf(error) !== undefined) return false;
    for (const at of causesOf(error)) {
      if (Reflect.get(at, 'code') === CONNECTION_ENDED || ENDED.test(at.message)) return true;
    }
  } catch {
    // A value that throws when its properties are read is not a driver error.
  }
  return false;
}

/** Whether the pool says that it has been ended: that of node-postgres, and those modelled on it. */
export function saysEnded(db: Executor): boolean {
  const client: unknown = Reflect.get(Object(db), '$client');
  return typeof client === 'object' && client !== null && Reflect.get(client, 'ending') === true;
}

/** What becomes of a statement that was under way when its pool was ended: it may have been carried out. */
export function lostWithPool(): Error {
  return Object.assign(new Error('The connection was closed, because its pool was ended'), {
    code: CONNECTION_ENDED,
  });
}
