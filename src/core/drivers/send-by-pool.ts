import { PgDialect } from 'drizzle-orm/pg-core';
import {
  isPool,
  type PgPool,
  type PgQuery,
  type PooledClient,
  type ReadValue,
  type TakenClient,
  take,
} from '../sql/pooled-client.ts';
import { resolvesWithin } from '../time/resolves-within.ts';
import type { Sender, SentStatement } from './sent-statement.ts';

/**
 * The types that Drizzle reads by itself, from their text: `timestamptz`, `timestamp`, `date`, `interval`,
 * the arrays of these, and that of `numeric`.
 */
const READ_BY_DRIZZLE: ReadonlySet<number> = new Set([1184, 1114, 1082, 1186, 1185, 1115, 1182, 1187, 1231]);

const asText: ReadValue = (value) => value;

/** An idle connection answers within this time, or is closed. */
const PING_MS = 2_000;

const dialect = new PgDialect();

/** Takes a connection of the pool for each statement, as the pool itself does, so that it can be closed. */
export function pooledSender(client: unknown): Sender | undefined {
  if (!isPool(client)) return undefined;
  return {
    prepares: false,
    send(query) {
      const { sql, params } = dialect.sqlToQuery(query.getSQL());
      return new PooledStatement(client, sql, params);
    },
    async heal(over) {
      // All at once: the pool would hand out the same connection again and again.
      await Promise.all(Array.from({ length: client.idleCount }, () => isSilent(client)));
      // None may be free for as long as the app holds all of them.
      while (!over.aborted && (await isSilent(client)));
    },
  };
}

class PooledStatement implements SentStatement {
  readonly answer: Promise<unknown>;
  #taken: TakenClient | undefined;
  #withdrawn: Error | undefined;

  constructor(pool: PgPool, text: string, parameters: readonly unknown[]) {
    this.answer = this.#run(pool, text, parameters);
  }

  abandon(reason: Error): boolean {
    this.#withdrawn = reason;
    this.#taken?.release(reason);
    return this.#taken !== undefined;
  }

  async #run(pool: PgPool, text: string, parameters: readonly unknown[]): Promise<unknown> {
    const taken = await take(pool);
    if (this.#withdrawn !== undefined) {
      taken.release();
      throw this.#withdrawn;
    }
    this.#taken = taken;
    try {
      const result = await taken.client.query(asDrizzleSends(taken.client, text, parameters));
      taken.release();
      return result;
    } catch (error) {
      // As `pool.query` does: the connection may be broken.
      taken.release(error);
      throw error;
    }
  }
}

/** The columns of Drizzle's tables take dates as text; node-postgres would make each of them a `Date`. */
function asDrizzleSends(client: PooledClient, text: string, values: readonly unknown[]): PgQuery {
  const getTypeParser = (type: number, format?: string) =>
    READ_BY_DRIZZLE.has(type) ? asText : client.getTypeParser(type, format);
  return { text, values, types: { getTypeParser } };
}

/** Asks a connection of the pool, and closes it if it stays silent. One that is refused or breaks is not. */
async function isSilent(pool: PgPool): Promise<boolean> {
  const taken = await take(pool).catch(() => undefined);
  if (taken === undefined) return false;
  try {
    const answered = await resolvesWithin(taken.client.query('select 1'), PING_MS);
    taken.release(answered ? undefined : new Error('This connection did not answer'));
    return !answered;
  } catch (error) {
    taken.release(error);
    return false;
  }
}
