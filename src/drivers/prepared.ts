import type { SQLWrapper } from 'drizzle-orm';
import { PgDialect } from 'drizzle-orm/pg-core';
import { type Database, type Runner, sqlStateOf } from '../sql/executor.ts';

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

export interface WorkerRunner extends Runner {
  /** Whether it prepares what it runs, so that Postgres may keep a plan. @default false */
  readonly prepares?: boolean;
}

const dialect = new PgDialect();

/**
 * Runs a worker's few statements prepared on postgres.js, unless its `prepare` is off. Unprepared,
 * postgres.js makes two round trips for every statement with parameters, the first to ask for their types.
 * The other drivers make one, so they get their `db` back.
 *
 * Where a pooler refuses prepared statements, this repeats the refused statement unprepared, and prepares
 * none from then on. A refused statement has had no effect.
 *
 * @param onRefused called once, with the error
 */
export function preparing(db: Database, onRefused: (error: unknown) => void): WorkerRunner {
  const client = postgresJsClientOf(db);
  if (client === undefined) return db;
  let refused = false;
  const may = client.options?.prepare !== false;
  return {
    get prepares() {
      return may && !refused;
    },
    async execute(query: SQLWrapper): Promise<unknown> {
      if (refused) return await db.execute(query);
      const { sql, params } = dialect.sqlToQuery(query.getSQL());
      try {
        return await client.unsafe(sql, params, { prepare: true });
      } catch (error) {
        if (!REFUSED.test(sqlStateOf(error) ?? '')) throw error;
        if (!refused) onRefused(error);
        refused = true;
        return await db.execute(query);
      }
    },
  };
}

/** Detected by its shape: the class is the driver's own, and there may be two copies of it. */
function postgresJsClientOf(db: Database): PostgresJsClient | undefined {
  const client: unknown = Reflect.get(db, '$client');
  if (typeof client !== 'function') return undefined;
  // Bun's client has `unsafe`, too, but prepares by itself and takes no options there.
  const { unsafe, listen, subscribe } = client as unknown as Record<string, unknown>;
  const isPostgresJs = [unsafe, listen, subscribe].every((method) => typeof method === 'function');
  return isPostgresJs ? (client as unknown as PostgresJsClient) : undefined;
}
