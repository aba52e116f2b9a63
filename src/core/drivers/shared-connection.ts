import type { Runner } from '../sql/executor.ts';
import { lostWithPool } from './ended-pool.ts';
import type { ListeningConnection } from './listen.ts';
import { runnerOn } from './runner-on.ts';

export type OnNotify = (payload: string) => void;

/** What is used of the `listen` of postgres.js, and of drivers modelled on it. */
export interface ListenFunction {
  (channel: string, onNotify: OnNotify, onListen: () => void): Promise<{ unlisten(): unknown }>;
  /** postgres.js keeps here the client of one connection that does the listening, for all channels. */
  sql?: DedicatedClient | undefined;
  /** And here who listens. */
  channels?: Record<string, { listeners: { readonly fn: OnNotify }[] }>;
}

interface DedicatedClient {
  readonly options: {
    onclose?: (...args: unknown[]) => void;
    readonly max?: number;
    readonly connect_timeout?: number;
  };
  unsafe?(text: string, parameters: unknown[]): PromiseLike<unknown>;
  end(options: { timeout: number }): Promise<void>;
}

interface Member {
  readonly channel: string;
  readonly onNotify: OnNotify;
  readonly lose: (error: unknown) => void;
}

/**
 * Time for what is under way, in seconds. A connection that is closed while it opens still sends its
 * `listen`, and with TLS it stays open.
 */
const GOODBYE_S = 0.25;

const known = new WeakMap<DedicatedClient, SharedConnection>();

/**
 * The connection on which a client of postgres.js listens, for all workers on that client and for the app. It
 * is lost for all of them at once, whether the server has closed it or one of them considers it dead.
 * Otherwise a worker that came back to a dead connection would find it dead again and again.
 *
 * postgres.js itself silently reconnects, every few milliseconds while the server refuses, and never closes
 * the connection. So a loss is noticed here and left to each worker; the next caller opens another
 * connection. The driver itself moves the app's channels to it.
 */
export class SharedConnection implements ListeningConnection {
  readonly #listen: ListenFunction;
  readonly #client: DedicatedClient;
  /** What postgres.js does about a loss: it listens again, for all who are still in `channels`. */
  readonly #listenAgain: () => void;
  readonly #members = new Set<Member>();
  readonly #end: DedicatedClient['end'];
  /** Set once it is given up; resolves when it sends nothing any more. */
  #closed: Promise<void> | undefined;
  readonly runner: Runner;

  private constructor(listen: ListenFunction, client: DedicatedClient, unsafe: Unsafe) {
    this.#listen = listen;
    this.#client = client;
    const { options, end } = client;
    const onClose = options.onclose;
    this.#listenAgain = () => onClose?.();
    this.#end = end;
    // Called by the pool when the app ends it: what follows does not count as a loss, and no reconnect helps
    // the worker.
    client.end = (how) => {
      this.destroy(lostWithPool());
      return this.#closed ?? end(how);
    };
    options.onclose = () => this.destroy(new Error('The connection that listens was closed'));
    this.runner = runnerOn((text, parameters) =>
      // It would open another connection that is never closed.
      this.#closed ? Promise.reject(closed()) : unsafe.call(client, text, parameters),
    );
  }

  /**
   * The connection that a call of `listen` has just begun to use.
   *
   * @returns `undefined` for Bun, and for a postgres.js with different internals: there a loss goes
   * unnoticed, and a worker's lock would not be held on the connection that replaces a lost one
   */
  static of(listen: ListenFunction): SharedConnection | undefined {
    const { sql: client, channels } = listen;
    if (client === undefined || channels === undefined) return undefined;
    const { max, onclose } = client.options;
    const { unsafe } = client;
    if (max !== 1 || onclose === undefined || unsafe === undefined) return undefined;
    const shared = known.get(client) ?? new SharedConnection(listen, client, unsafe);
    known.set(client, shared);
    return shared;
  }

  /** How long the driver lets it connect; 0 where it sets no limit. */
  get connectTimeoutS(): number | undefined {
    return this.#client.options.connect_timeout;
  }

  /**
   * One more that listens; `lost` rejects when the connection is lost, and `leave` resolves when nothing more
   * is sent on behalf of this one.
   */
  join(
    channel: string,
    onNotify: OnNotify,
  ): { readonly lost: Promise<never>; readonly leave: () => Promise<void> } {
    let lose: Member['lose'] = () => undefined;
    const lost = new Promise<never>((_, reject) => {
      lose = reject;
    });
    // No caller may be awaiting it yet.
    lost.catch(() => undefined);
    const member = { channel, onNotify, lose };
    this.#members.add(member);
    return { lost, leave: () => this.#leave(member) };
  }

  destroy(reason: unknown): void {
    if (this.#closed) return;
    const members = [...this.#members];
    for (const member of members) this.#forget(member);
    this.#close(0);
    this.#listenAgain();
    for (const { lose } of members) lose(reason);
  }

  async #leave(member: Member): Promise<void> {
    if (this.#closed === undefined) {
      this.#forget(member);
      if (Object.keys(this.#listen.channels ?? {}).length === 0) this.#close(GOODBYE_S);
    }
    await this.#closed;
  }

  #forget(member: Member): void {
    this.#members.delete(member);
    const { channels } = this.#listen;
    const entry = channels?.[member.channel];
    if (channels === undefined || entry === undefined) return;
    entry.listeners = entry.listeners.filter(({ fn }) => fn !== member.onNotify);
    if (entry.listeners.length === 0) delete channels[member.channel];
  }

  #close(timeout: number): void {
    // The next `listen` opens another connection, which this end must not affect.
    if (this.#listen.sql === this.#client) this.#listen.sql = undefined;
    delete this.#client.options.onclose;
    this.#closed = this.#end({ timeout }).catch(() => undefined);
  }
}

type Unsafe = NonNullable<DedicatedClient['unsafe']>;

function closed(): Error {
  return new Error('The connection that listens was closed');
}
