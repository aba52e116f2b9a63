import { drizzle } from 'drizzle-orm/postgres-js';
import postgres from 'postgres';

export function connect(url = process.env.DATABASE_URL) {
  if (!url) throw new Error('DATABASE_URL is not set');
  return drizzle({ client: postgres(url, { max: 10, onnotice: () => {} }) });
}

export type Database = ReturnType<typeof connect>;
