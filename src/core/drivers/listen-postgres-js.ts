import { settlesWithin } from '../time/resolves-within.ts';
import { aborted, type Listen } from './listen.ts';
import { type ListenFunction, SharedConnection } from './shared-connection.ts';

/** What is used of postgres.js and of Bun's SQL, whose `listen` is made after it. */
export interface PostgresJsClient {
  readonly listen: ListenFunction;
}

/** Beyond the time that the driver takes to connect, in seconds. */
const LISTEN_TIMEOUT_S = 10;
/** The driver's own default, in seconds. */
const CONNECT_TIMEOUT_S = 30;

/**
 * Listens by the driver's own `listen`, which opens one connection beside its pool for all listeners on a
 * client: see {@link SharedConnection}. Where its internals are not as expected (Bun), the driver reconnects
 * by itself, and `ready` is called again.
 */
export function listenByPostgresJs({ listen }: PostgresJsClient): Listen {
  return async (channel, events, signal) => {
    if (signal.aborted) return;
    const over = aborted(signal);
    // A driver that cannot be told to close its connection goes on after this has rejected.
    let isLeft = false;
    const onNotify = (payload: string) => {
      if (!signal.aborted && !isLeft) events.notify(payload);
    };
    const onListen = () => {
      if (!signal.aborted && !isLeft) events.ready(shared);
    };
    const listening = listen(channel, onNotify, onListen);
    // The client of the connection is there before it is open.
    const shared = SharedConnection.of(listen);
    const membership = shared?.join(channel, onNotify);
    try {
      const timeoutS = (shared?.connectTimeoutS || CONNECT_TIMEOUT_S) + LISTEN_TIMEOUT_S;
      // A network may fall silent just after the connection is made.
      if (!(await settlesWithin(Promise.race([listening, over]), timeoutS * 1_000))) {
        const silence = new Error(`The server has not answered LISTEN within ${timeoutS} s`);
        shared?.destroy(silence);
        throw silence;
      }
      await Promise.race([listening, over]);
      await Promise.race([membership?.lost ?? over, over]);
    } finally {
      isLeft = true;
      if (membership !== undefined) await membership.leave();
      else listening.then((subscription) => subscription.unlisten()).catch(() => undefined);
    }
  };
}

/**
 * The same on another connection than the one for all listeners, which may have fallen silent. The driver has
 * no way to ask for it: it opens one for the first who listens. Where its internals are not as expected, this
 * listens as the others do.
 */
export function listenApartByPostgresJs({ listen }: PostgresJsClient): Listen {
  return async (channel, events, signal) =>
    await listenByPostgresJs({ listen: asFirst(listen) })(channel, events, signal);
}

/** A `listen` that is called once, as if no other had been before, nor came after it. */
function asFirst(listen: ListenFunction): ListenFunction {
  const first: ListenFunction = (...given) => {
    const { sql, channels } = listen;
    Object.assign(listen, { sql: undefined, channels: undefined });
    try {
      return listen(...given);
    } finally {
      Object.assign(first, { sql: listen.sql, channels: listen.channels });
      // It would have the others listen again.
      if (first.sql !== undefined) first.sql.options.onclose = () => undefined;
      // What is notified here, the driver looks up there.
      Object.assign(listen, { sql, channels: channels ?? {} });
    }
  };
  return first;
}
