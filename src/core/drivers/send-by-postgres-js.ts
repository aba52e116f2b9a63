import type { SQLWrapper } from 'drizzle-orm';
import { PgDialect } from 'drizzle-orm/pg-core';
import { type Database, sqlStateOf } from '../sql/executor.ts';
import type { Sender } from './sent-statement.ts';

/** postgres.js can prepare a statement of our own text, but Drizzle has no way to ask for it. */
interface PostgresJsClient {
  unsafe(
    text: string,
    parameters: readonly unknown[],
    options: { readonly prepare: boolean },
  ): PromiseLike<unknown>;
  readonly options?: { readonly prepare?: boolean };
}

/** The statement is unknown, exists or is refused: a pooler gives each transaction another connection. */
const REFUSED = /^(26000|42P05|0A000)$/;

const dialect = new PgDialect();

/**
 * Runs a worker's hot statements prepared on postgres.js, unless its `prepare` is off. Unprepared,
 * postgres.js makes two round trips for every statement with parameters, the first to ask for their types.
 * The other drivers make one.
 *
 * Where a pooler refuses prepared statements, this repeats the refused statement unprepared, and prepares
 * none from then on. A refused statement has had no effect.
 *
 * postgres.js hands out no connection of its pool and closes none, so a statement without an answer keeps its
 * connection until the operating system gives that up.
 *
 * @returns `undefined` for other drivers
 */
export function postgresJsSender(
  db: Database,
  client: unknown,
  onRefused: (error: unknown) => void,
): Sender | undefined {
  if (!isPostgresJs(client)) return undefined;
  const may = client.options?.prepare !== false;
  let refused = false;
  const preparedly = async (query: SQLWrapper) => {
    const { sql, params } = dialect.sqlToQuery(query.getSQL());
    try {
      return await client.unsafe(sql, params, { prepare: true });
    } catch (error) {
      if (!REFUSED.test(sqlStateOf(error) ?? '')) throw error;
      if (!refused) onRefused(error);
      refused = true;
      return await db.execute(query);
    }
  };
  return {
    get prepares() {
      return may && !refused;
    },
    send: (query, prepared) => ({
      answer: prepared && !refused ? preparedly(query) : db.execute(query),
      // The server may get the statement whenever the connection comes to life again.
      abandon: () => true,
    }),
    heal: async () => undefined,
  };
}

/** Detected by its shape: the class is the driver's own, and there may be two copies of it. */
function isPostgresJs(client: unknown): client is PostgresJsClient {
  if (typeof client !== 'function') return false;
  // Bun's client has `unsafe`, too, but prepares by itself and takes no options there.
  const { unsafe, listen, subscribe } = client as unknown as Record<string, unknown>;
  return [unsafe, listen, subscribe].every((method) => typeof method === 'function');
}
