import { settlesWithin } from '../time/resolves-within.ts';
import { aborted, type Listen } from './listen.ts';
import { runnerOn } from './runner-on.ts';

/** What is used of a client of node-postgres, and of drivers modelled on it. */
interface PgClient {
  connect(): Promise<unknown>;
  query(text: string, parameters?: unknown[]): Promise<unknown>;
  end(): Promise<unknown>;
  unref?(): void;
  on(event: 'notification', listener: (message: { payload?: string }) => void): unknown;
  on(event: 'error', listener: (error: Error) => void): unknown;
  on(event: 'end', listener: () => void): unknown;
}

type PgConfig = Readonly<Record<string, unknown>>;
type PgClientClass = new (config: PgConfig) => PgClient;

interface ClientSource {
  readonly Client: PgClientClass;
  readonly config: PgConfig;
  /** What the app does with each connection of its pool, such as to set the role or the `search_path`. */
  readonly prepare?: (made: PgClient) => Promise<void>;
}

/** node-postgres has no limit for connecting, and a firewall may swallow the attempt. */
const CONNECT_TIMEOUT_MS = 10_000;
const LISTEN_TIMEOUT_MS = 10_000;
const NOT_LISTENING = `The server has not answered LISTEN within ${LISTEN_TIMEOUT_MS / 1_000} s`;

/**
 * Listens on a separate client, made as the pool makes its clients, with its `onConnect` and its event
 * `connect`: a client from the pool would be missing from the app's pool for as long as the worker runs. For
 * node-postgres and neon-serverless, given a pool or a client.
 *
 * @returns `undefined` when `client` is something else
 */
export function listenByNodePostgres(client: object): Listen | undefined {
  const source = clientSource(client);
  if (source === undefined) return undefined;
  const { Client, config, prepare } = source;
  return async (channel, events, signal) => {
    const listener = new Client({
      ...config,
      // pg hides the password from `{ ...config }`.
      ...('password' in config && { password: config.password }),
      keepAlive: true,
      connectionTimeoutMillis: config.connectionTimeoutMillis || CONNECT_TIMEOUT_MS,
    });
    try {
      const lost = new Promise<never>((_, reject) => {
        // Never removed: a client without a listener for its errors ends the process with the first.
        listener.on('error', reject);
        listener.on('end', () => reject(new Error('The connection that listens was closed')));
        listener.on('notification', ({ payload }) => {
          if (!signal.aborted) events.notify(payload ?? '');
        });
        listener
          .connect()
          .then(async () => {
            await prepare?.(listener);
            if (signal.aborted) return;
            const listening = listener.query(`listen "${channel}"`);
            // A network may fall silent just after the connection is made.
            if (!(await settlesWithin(listening, LISTEN_TIMEOUT_MS))) throw new Error(NOT_LISTENING);
            await listening;
            const runner = runnerOn((text, values) => listener.query(text, values));
            if (!signal.aborted) events.ready({ runner, destroy: reject });
          })
          .catch(reject);
      });
      await Promise.race([lost, aborted(signal)]);
    } finally {
      listener.end().catch(() => undefined);
      // Closing a connection to a server that does not respond must not keep the process alive.
      listener.unref?.();
    }
  };
}

function clientSource(client: object): ClientSource | undefined {
  const fields = client as Readonly<Record<string, unknown>>;
  const { connect, Client, options, connectionParameters, constructor: ownClass } = fields;
  if (typeof connect !== 'function') return undefined;
  // A pool names the class of its clients; a client has its own class and its parsed settings.
  if (typeof Client === 'function' && isConfig(options)) {
    const prepare = (made: PgClient) => prepareAs(client, options, made);
    return { Client: Client as PgClientClass, config: options, prepare };
  }
  if (typeof ownClass === 'function' && isConfig(connectionParameters))
    return { Client: ownClass as PgClientClass, config: connectionParameters };
  return undefined;
}

/** As the pool does with each client of its own. What the app sends then goes before what is sent later. */
async function prepareAs(pool: object, { onConnect }: PgConfig, made: PgClient): Promise<void> {
  if (typeof onConnect === 'function') await onConnect(made);
  const emit: unknown = Reflect.get(pool, 'emit');
  if (typeof emit === 'function') Reflect.apply(emit, pool, ['connect', made]);
}

function isConfig(value: unknown): value is PgConfig {
  return typeof value === 'object' && value !== null;
}
