/** Stands for services of others: each call commits by itself, and a repeated key changes nothing. */
import { sql } from 'drizzle-orm';
import type { Database } from './database.ts';
import { mails, serviceCalls } from './schema.ts';

export async function callService(
  db: Database,
  what: 'charge' | 'refund' | 'parcel',
  orderId: number,
  key: string,
): Promise<{ key: string }> {
  await db
    .insert(serviceCalls)
    .values({ key, what, orderId })
    .onConflictDoUpdate({ target: serviceCalls.key, set: { times: sql`${serviceCalls.times} + 1` } });
  return { key };
}

/** The link is the key: a mail with it is delivered once. */
export async function mailClerk(db: Database, orderId: number, link: string): Promise<void> {
  await db.insert(mails).values({ link, orderId }).onConflictDoNothing();
}
