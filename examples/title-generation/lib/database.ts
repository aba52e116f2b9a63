import { drizzle } from 'drizzle-orm/postgres-js';
import postgres from 'postgres';

// `next dev` loads this file again after each change, and a pool each time would use up the server's connections.
const kept = globalThis as { client?: postgres.Sql };
kept.client ??= postgres(process.env.DATABASE_URL ?? '', { max: 10 });

export const client = kept.client;
export const db = drizzle({ client });
