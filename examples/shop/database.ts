import { drizzle } from 'drizzle-orm/postgres-js';
import postgres from 'postgres';

/** Opens the shop's database. The queue has no pool of its own: all that it does goes through this one. */
export function connect({ url = process.env.DATABASE_URL, max = 10 } = {}) {
  if (!url) throw new Error('DATABASE_URL is not set');
  const client = postgres(url, { max });
  return { db: drizzle({ client }), close: () => client.end({ timeout: 5 }) };
}

export type ShopDatabase = ReturnType<typeof connect>['db'];
