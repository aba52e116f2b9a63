/** What the web app does. */
import { asc, gt } from 'drizzle-orm';
import type { EnqueuedBatch } from 'drizzle-queue';
import type { Database } from './database.ts';
import { queue, reportMailing, sendLetter } from './jobs.ts';
import { customers } from './schema.ts';

type Transaction = Parameters<Parameters<Database['transaction']>[0]>[0];

/** Enqueues a letter for each customer, and one report at the end: all of it, or nothing. */
export async function startMailing(db: Database, campaign: string): Promise<EnqueuedBatch> {
  return await db.transaction((tx) =>
    queue.workflows.enqueueBatch(tx, sendLetter, lettersOf(tx, campaign), {
      last: reportMailing,
      payload: { campaign },
    }),
  );
}

/** Reads a thousand customers at a time, so that no list of all of them is in memory. */
async function* lettersOf(tx: Transaction, campaign: string) {
  for (let after = 0; ; ) {
    const some = await tx
      .select()
      .from(customers)
      .where(gt(customers.id, after))
      .orderBy(asc(customers.id))
      .limit(1_000);
    for (const { id, email } of some) yield { payload: { campaign, customerId: id, email } };
    const last = some.at(-1);
    if (last === undefined) return;
    after = last.id;
  }
}
