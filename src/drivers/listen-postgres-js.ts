import type { Runner } from '../sql/executor.ts';
import { aborted, type Listen } from './listen.ts';
import { runnerOn } from './runner-on.ts';

/** What is used of postgres.js and of Bun's SQL, whose `listen` is made after it. */
export interface PostgresJsClient {
  readonly listen: ListenFunction;
}

type OnNotify = (payload: string) => void;

interface ListenFunction {
  (channel: string, onNotify: OnNotify, onListen: () => void): Promise<{ unlisten(): unknown }>;
  /** postgres.js keeps here the client of one connection that does the listening, for all channels. */
  sql?: DedicatedClient | undefined;
  /** And here who listens. */
  channels?: Record<string, { listeners: { readonly fn: OnNotify }[] }>;
}

interface DedicatedClient {
  readonly options: { onclose?: (...args: unknown[]) => void; readonly max?: number };
  unsafe?(text: string, parameters: unknown[]): PromiseLike<unknown>;
  end(options: { timeout: number }): Promise<void>;
}

/**
 * Listens by the driver's own `listen`, which opens a connection beside its pool and connects anew when that is lost.
 *
 * postgres.js does the latter without a word, every few milliseconds while the server refuses connections; it never closes the
 * connection; and after it has connected anew, `unlisten` does nothing. So where its insides are as expected, the loss is noticed here
 * and left to the caller, and the connection is closed when nobody listens on it any more.
 */
export function listenByPostgresJs({ listen }: PostgresJsClient): Listen {
  return async (channel, events, signal) => {
    const onNotify = (payload: string) => {
      if (!signal.aborted) events.notify(payload);
    };
    const onListen = () => {
      if (!signal.aborted) events.ready(runnerOf(listen.sql));
    };
    let subscription: { unlisten(): unknown } | undefined;
    try {
      const over = aborted(signal);
      const listening = listen(channel, onNotify, onListen).then((value) => {
        subscription = value;
      });
      await Promise.race([listening, over]);
      await Promise.race([lossOf(listen, () => forget(listen, channel, onNotify)), over]);
    } finally {
      leave(listen, channel, onNotify, subscription);
    }
  };
}

/** Only where the client is known to have one connection, and its loss is noticed: on a new one nobody would hold our locks. */
function runnerOf(dedicated: DedicatedClient | undefined): Runner | undefined {
  const unsafe = dedicated?.unsafe;
  if (dedicated?.options.max !== 1 || dedicated.options.onclose === undefined) return undefined;
  return unsafe && runnerOn((text, parameters) => unsafe.call(dedicated, text, parameters));
}

/** Rejects when the connection is lost, if postgres.js lets us see it. `forget` runs before postgres.js would connect anew. */
function lossOf({ sql: dedicated }: ListenFunction, forget: () => void): Promise<never> {
  return new Promise((_, reject) => {
    const options = dedicated?.options;
    const onclose = options?.onclose;
    // Bun, or a postgres.js of other insides: it connects anew by itself, and `ready` is called again.
    if (options === undefined || onclose === undefined) return;
    options.onclose = (...args) => {
      forget();
      // The app may listen on the same connection, for which postgres.js is right to connect anew.
      onclose(...args);
      reject(new Error('The connection that listens was closed'));
    };
  });
}

function forget({ channels }: ListenFunction, channel: string, onNotify: OnNotify): void {
  const entry = channels?.[channel];
  if (channels === undefined || entry === undefined) return;
  entry.listeners = entry.listeners.filter(({ fn }) => fn !== onNotify);
  if (entry.listeners.length === 0) delete channels[channel];
}

function leave(
  listen: ListenFunction,
  channel: string,
  onNotify: OnNotify,
  subscription: { unlisten(): unknown } | undefined,
): void {
  const { sql: dedicated, channels } = listen;
  if (dedicated === undefined || channels === undefined) {
    Promise.resolve(subscription?.unlisten()).catch(() => undefined);
    return;
  }
  forget(listen, channel, onNotify);
  if (Object.keys(channels).length > 0) return;
  // The next `listen` opens another, which is no business of this one's end.
  listen.sql = undefined;
  delete dedicated.options.onclose;
  // At once, without a goodbye: the server may not answer.
  dedicated.end({ timeout: 0 }).catch(() => undefined);
}
