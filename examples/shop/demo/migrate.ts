import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

/**
 * Creates the shop's tables, and the queue's among them, as a deploy would: with drizzle-kit's own command, which applies
 * the migrations that `drizzle-kit generate` has written. (drizzle-orm's `migrate()` does the same without a process.)
 */
export async function migrate(databaseUrl: string, signal: AbortSignal): Promise<void> {
  const command = ['node_modules/drizzle-kit/bin.cjs', 'migrate', '--config=examples/shop/drizzle.config.ts'];
  const env = { ...process.env, DATABASE_URL: databaseUrl };
  await promisify(execFile)(process.execPath, command, { env, signal });
}
