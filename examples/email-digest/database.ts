import { drizzle } from 'drizzle-orm/postgres-js';
import postgres from 'postgres';

export function connect(url = process.env.DATABASE_URL) {
  if (!url) throw new Error('DATABASE_URL is not set');
  // Eight handlers may hold a connection each in a transaction, and the worker needs some of its own.
  return drizzle({ client: postgres(url, { max: 12 }) });
}

export type Database = ReturnType<typeof connect>;
