import type { SQLWrapper } from 'drizzle-orm';
import { PgDialect } from 'drizzle-orm/pg-core';
import type { Runner } from '../sql/executor.ts';

const dialect = new PgDialect();

/** Runs Drizzle's SQL on one connection, by a function that takes a statement's text and parameters. */
export function runnerOn(query: (text: string, parameters: unknown[]) => PromiseLike<unknown>): Runner {
  return {
    execute(statement: SQLWrapper): PromiseLike<unknown> {
      const { sql, params } = dialect.sqlToQuery(statement.getSQL());
      return query(sql, params);
    },
  };
}
