import { PgDialect } from 'drizzle-orm/pg-core';
import { backendPidQuery } from '../queries/presence/backend-pid.ts';
import type { Executor } from '../sql/executor.ts';
import { type Returnable, type TakenClient, take } from '../sql/pooled-client.ts';

/** One statement: which of the driver's connections ran it, and on which process of the server. */
export interface Observation {
  /** The same object, or the same text, for the same connection of the driver. */
  readonly connection: unknown;
  /** What that connection was told as the server's process id when it was made. */
  readonly told: number;
  /** What the server says. */
  readonly pid: number;
}

/** Runs the statement on connections of the driver, of which more than one is open if that can be had. */
type Observe = (see: (observation: Observation) => boolean) => Promise<void>;

/**
 * How many statements are asked at most, and only where the process is not the one that was told: a busy
 * pooler may give the same connections by chance, and a busy pool seldom the same one twice.
 */
const STATEMENTS = 25;
/** How long another connection of the pool is waited for, which may be as full as it gets. */
const SECOND_MS = 500;

const { sql: STATEMENT } = new PgDialect().sqlToQuery(backendPidQuery);

/**
 * Whether a pooler in transaction mode is seen between the driver and the server: it tells its clients
 * process ids of its own, and gives each transaction whatever connection to the server is free. `false` also
 * where that cannot be known: in a transaction, which keeps its connection; on drivers that do not tell what
 * they were told (HTTP, PGlite, Bun); with a single connection which the pooler has given the same each time.
 *
 * On a direct connection one statement answers. Never rejects, and waits for a full pool no longer than the
 * statements of everybody else, and half a second.
 */
export async function isPooledByTransaction(db: Executor): Promise<boolean> {
  const observe = observerOf(Reflect.get(Object(db), '$client'));
  const seen: Observation[] = [];
  try {
    await observe?.((observation) => {
      seen.push(observation);
      return observation.pid !== observation.told && seen.length < STATEMENTS && !areShared(seen);
    });
  } catch {
    // The rest of the check fails by the same error, or it was about a further connection only.
  }
  return areShared(seen);
}

/**
 * Whether statements, one after the other, show that connections are shared: one was given two processes of
 * the server, or another had its process between two statements of it. Neither happens in session mode.
 */
export function areShared(seen: readonly Observation[]): boolean {
  return seen.some((first, index) =>
    seen
      .slice(index + 1)
      .some(
        (last, after) =>
          last.connection === first.connection &&
          (last.pid !== first.pid ||
            seen
              .slice(index + 1, index + 1 + after)
              .some(({ connection, pid }) => connection !== first.connection && pid === first.pid)),
      ),
  );
}

function observerOf(client: unknown): Observe | undefined {
  if (typeof client === 'function') {
    const { unsafe } = client as unknown as Partial<PostgresJsClient>;
    return typeof unsafe === 'function' ? (see) => observePostgresJs(unsafe, see) : undefined;
  }
  if (typeof client !== 'object' || client === null || !('connect' in client)) return undefined;
  // A pool of node-postgres, or of a driver modelled on it, has the class of its clients; a client has not.
  if ('Client' in client) return (see) => observePool(client as unknown as PgPool, see);
  return (see) => observeClients([client as unknown as PgClient], see);
}

/** What is used of postgres.js; the results of Bun's SQL have no `state`. */
interface PostgresJsClient {
  unsafe(text: string): PromiseLike<readonly { pid?: unknown }[] & { readonly state?: PostgresJsState }>;
}

interface PostgresJsState {
  readonly pid?: unknown;
  readonly secret?: unknown;
}

/** postgres.js takes the open connection that has rested longest, so two take turns. */
async function observePostgresJs(
  unsafe: PostgresJsClient['unsafe'],
  see: (observation: Observation) => boolean,
): Promise<void> {
  const ask = async (): Promise<Observation> => {
    const result = await unsafe(STATEMENT);
    const { pid, secret } = result.state ?? {};
    return observation(`${pid} ${secret}`, pid, result);
  };
  const first = await ask();
  if (!see(first)) return;
  // A second one opens while the first is busy.
  await Promise.all([ask(), ask()]);
  while (see(await ask()));
}

interface PgPool {
  readonly options?: { readonly max?: number };
  connect(): Promise<PgClient & Returnable>;
}

interface PgClient {
  readonly processID?: number | null;
  query(text: string): Promise<{ readonly rows: readonly { pid?: unknown }[] }>;
}

type Taken = TakenClient<PgClient & Returnable>;

/** A pool gives the client that was used last, so one is kept while another is asked. */
async function observePool(pool: PgPool, see: (observation: Observation) => boolean): Promise<void> {
  const first = await take(pool);
  let second: Taken | undefined;
  try {
    if (!see(await observeClient(first.client))) return;
    if ((pool.options?.max ?? 0) > 1) second = await takeWithin(pool, SECOND_MS);
    await observeClients(second ? [first.client, second.client] : [first.client], see);
  } finally {
    first.release();
    second?.release();
  }
}

async function observeClients(
  clients: readonly PgClient[],
  see: (observation: Observation) => boolean,
): Promise<void> {
  for (;;) for (const client of clients) if (!see(await observeClient(client))) return;
}

async function observeClient(client: PgClient): Promise<Observation> {
  const { rows } = await client.query(STATEMENT);
  return observation(client, client.processID, rows);
}

/** @throws TypeError where the driver does not tell what it was told */
function observation(connection: unknown, told: unknown, [row]: readonly { pid?: unknown }[]): Observation {
  if (typeof told !== 'number' || row === undefined) throw new TypeError('no process id is known');
  return { connection, told, pid: Number(row.pid) };
}

/** `undefined` where none comes in time: the holder of the last client may be waiting for ours. */
async function takeWithin(pool: PgPool, ms: number): Promise<Taken | undefined> {
  const taking = take(pool);
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<undefined>((resolve) => {
    timer = setTimeout(() => resolve(undefined), ms);
  });
  const taken = await Promise.race([taking, late]).finally(() => clearTimeout(timer));
  if (taken === undefined) {
    taking.then(
      ({ release }) => release(),
      () => undefined,
    );
  }
  return taken;
}
