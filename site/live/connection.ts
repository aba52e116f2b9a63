import type { PGlite } from '@electric-sql/pglite';
import { drizzle, type PgliteDatabase } from 'drizzle-orm/pglite';
import type { Answer, RawTypes, Request } from './protocol.ts';

interface QueryOptions {
  readonly rowMode?: 'array' | 'object';
  readonly parsers?: Readonly<Record<number, unknown>>;
}

type Query = (text: string, params?: readonly unknown[], options?: QueryOptions) => Promise<unknown>;

type Unsent = Request extends infer R ? (R extends Request ? Omit<R, 'id'> : never) : never;

/**
 * A connection to the page's PostgreSQL, over a port as over a socket: what Drizzle uses of a client of PGlite,
 * whose own runs only where the database does.
 */
export class Connection {
  readonly #port: MessagePort;
  readonly #waiting = new Map<number, { resolve(result: unknown): void; reject(error: Error): void }>();
  readonly #listeners = new Map<string, Set<(payload: string) => void>>();
  #lastId = 0;

  constructor(port: MessagePort) {
    this.#port = port;
    port.onmessage = ({ data }: MessageEvent<Answer>) => this.#take(data);
  }

  readonly query: Query = (text, params, options) => this.#query(undefined, text, params, options);

  async exec(text: string): Promise<void> {
    await this.#ask({ type: 'exec', text });
  }

  async transaction<T>(run: (tx: { readonly query: Query }) => Promise<T>): Promise<T> {
    // It is answered once it is open, by its own id.
    const transaction = Number(await this.#ask({ type: 'begin' }));
    let result: T;
    try {
      result = await run({
        query: (text, params, options) => this.#query(transaction, text, params, options),
      });
    } catch (error) {
      await this.#ask({ type: 'end', transaction, commit: false });
      throw error;
    }
    await this.#ask({ type: 'end', transaction, commit: true });
    return result;
  }

  async listen(channel: string, callback: (payload: string) => void): Promise<() => Promise<void>> {
    const listeners = this.#listeners.get(channel) ?? new Set();
    this.#listeners.set(channel, listeners.add(callback));
    await this.#ask({ type: 'listen', channel });
    return async () => {
      listeners.delete(callback);
      if (listeners.size === 0) await this.#ask({ type: 'unlisten', channel });
    };
  }

  #query(
    within: number | undefined,
    text: string,
    params: readonly unknown[] = [],
    { rowMode = 'object', parsers = {} }: QueryOptions = {},
  ): Promise<unknown> {
    const raw: RawTypes = Object.keys(parsers).map(Number);
    return this.#ask({ type: 'query', text, params, rowMode, raw, within });
  }

  #ask(request: Unsent): Promise<unknown> {
    const id = ++this.#lastId;
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject });
      this.#port.postMessage({ ...request, id });
    });
  }

  #take(answer: Answer): void {
    if ('channel' in answer) {
      for (const listener of this.#listeners.get(answer.channel) ?? []) listener(answer.payload);
      return;
    }
    const waiting = this.#waiting.get(answer.id);
    this.#waiting.delete(answer.id);
    if ('result' in answer) waiting?.resolve(answer.result);
    else waiting?.reject(Object.assign(new Error(String(answer.error.message)), answer.error));
  }
}

/** Drizzle over a connection. */
export function drizzleOn(connection: Connection): PgliteDatabase {
  // Drizzle uses nothing else of the client; PGlite's own class has private parts, which no other can have.
  return drizzle({ client: connection as unknown as PGlite });
}
