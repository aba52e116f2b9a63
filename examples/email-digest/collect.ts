import { and, asc, eq, isNull, lt } from 'drizzle-orm';
import type { DbOrTx } from 'drizzle-queue';
import type { Database } from './database.ts';
import { digests, events } from './schema.ts';

export interface Digest {
  readonly id: number;
  readonly sentAt: Date | null;
  /** The texts of its events, in the order in which they happened. */
  readonly lines: readonly string[];
}

/**
 * The digest of a tenant for the period that ends then. What is in it is decided once, by the first attempt: were a later one to add
 * what has come in meanwhile, after a crash a mail that is already out and its repetition would differ. What comes late is in the next.
 */
export async function collectDigest(
  db: DbOrTx<Database>,
  tenantId: number,
  periodEnd: Date,
): Promise<Digest | undefined> {
  return await db.transaction(async (tx) => {
    const [created] = await tx
      .insert(digests)
      .values({ tenantId, periodEnd })
      .onConflictDoNothing()
      .returning();
    if (created !== undefined) {
      await tx
        .update(events)
        .set({ digestId: created.id })
        .where(and(eq(events.tenantId, tenantId), isNull(events.digestId), lt(events.happenedAt, periodEnd)));
    }
    const [digest] = await tx
      .select()
      .from(digests)
      .where(and(eq(digests.tenantId, tenantId), eq(digests.periodEnd, periodEnd)));
    if (digest === undefined) return undefined;
    const rows = await tx
      .select({ text: events.text })
      .from(events)
      .where(eq(events.digestId, digest.id))
      .orderBy(asc(events.happenedAt), asc(events.id));
    return { id: digest.id, sentAt: digest.sentAt, lines: rows.map(({ text }) => text) };
  });
}
