import type { SQL, SQLWrapper } from 'drizzle-orm';
import { PgDialect } from 'drizzle-orm/pg-core';
import type { Executor } from 'drizzle-queue';

const dialect = new PgDialect();

/** One statement that was sent. */
export interface SentStatement {
  readonly sql: string;
  readonly params: unknown[];
}

/** A database that does something first, each time it is about to run a statement; `sent` is what it has run before. */
export function intercepted(
  db: Executor,
  act: (statement: SentStatement, sent: readonly SentStatement[]) => Promise<unknown>,
): Executor {
  const sent: SentStatement[] = [];
  return {
    async execute(query: SQLWrapper) {
      // The library builds all its statements with `sql`.
      const statement = dialect.sqlToQuery(query as SQL);
      await act(statement, sent);
      sent.push(statement);
      return await db.execute(query);
    },
    selectDistinctOn: db.selectDistinctOn,
  };
}

/** A database with the list of what was sent to it. */
export function recording(db: Executor): Executor & { readonly sent: SentStatement[] } {
  const sent: SentStatement[] = [];
  return { ...intercepted(db, async (statement) => sent.push(statement)), sent };
}

/** A database for what must not be sent at all. */
export function untouched(): Executor {
  return {
    async execute() {
      throw new Error('something was sent to the database');
    },
    selectDistinctOn: () => undefined,
  };
}
