/** What is used of a pool of node-postgres, and of drivers modelled on it. */
export interface PgPool {
  readonly idleCount: number;
  connect(): Promise<PooledClient>;
}

/** A connection that such a pool gives out. */
export interface Returnable {
  /** @param error with one, the connection is closed instead of being given back */
  release(error?: Error): void;
  on(event: 'error', listener: (error: unknown) => void): unknown;
  removeListener(event: 'error', listener: (error: unknown) => void): unknown;
}

export interface PooledClient extends Returnable {
  query(text: string): Promise<unknown>;
  query(query: PgQuery): Promise<unknown>;
  /** How the app has the values of a type read. */
  getTypeParser(type: number, format?: string): ReadValue;
}

export type ReadValue = (value: string) => unknown;

export interface PgQuery {
  readonly text: string;
  readonly values: readonly unknown[];
  readonly types: { getTypeParser(type: number, format?: string): ReadValue };
}

/** A connection between its checkout and its return. */
export interface TakenClient<T extends Returnable = PooledClient> {
  readonly client: T;
  /** Only the first call counts. */
  release(error?: unknown): void;
}

/** Takes a connection, and listens for its errors: without a listener, the first would end the process. */
export async function take<T extends Returnable>(
  pool: { connect(): Promise<T> },
  onError: (error: unknown) => void = () => undefined,
): Promise<TakenClient<T>> {
  const client = await pool.connect();
  const giveBack = client.release;
  client.on('error', onError);
  let released = false;
  return {
    client,
    release(error) {
      if (released) return;
      released = true;
      giveBack.call(client, error === undefined ? undefined : asError(error));
      // A client that is being closed may still say why.
      if (error === undefined) client.removeListener('error', onError);
    },
  };
}

function asError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error));
}

/** A pool names the class of its clients, and counts those that are idle. */
export function isPool(client: unknown): client is PgPool {
  if (typeof client !== 'object' || client === null) return false;
  const { connect, Client, idleCount } = client as Readonly<Record<string, unknown>>;
  return typeof connect === 'function' && typeof Client === 'function' && typeof idleCount === 'number';
}
