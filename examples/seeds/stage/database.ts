import { drizzle } from 'drizzle-orm/postgres-js';
import postgres from 'postgres';

/** Opens a database; `close` gives its connections up. */
export function connect(url: string, max = 1) {
  const client = postgres(url, { max, onnotice: () => {} });
  return { db: drizzle({ client }), close: () => client.end({ timeout: 1 }) };
}

/** A database, or a transaction of it. */
export type Db = Pick<
  ReturnType<typeof connect>['db'],
  'select' | 'insert' | 'update' | 'delete' | 'with' | 'execute' | 'transaction' | '$count'
>;
