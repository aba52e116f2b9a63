import { eq } from 'drizzle-orm';
import type { Database } from './database.ts';
import { digestName, digestSchedule, queue } from './jobs.ts';
import { tenants } from './schema.ts';

/** Signs a tenant up; its schedule commits with it. */
export async function createTenant(db: Database, values: typeof tenants.$inferInsert): Promise<number> {
  return await db.transaction(async (tx) => {
    const [tenant] = await tx.insert(tenants).values(values).returning();
    if (tenant === undefined) throw new Error('The insert returned no tenant');
    await queue.schedules.set(tx, digestSchedule(tenant));
    return tenant.id;
  });
}

/** From the next morning on the digest comes at eight in the new zone. */
export async function moveTenant(db: Database, id: number, timeZone: string): Promise<void> {
  await db.transaction(async (tx) => {
    await tx.update(tenants).set({ timeZone }).where(eq(tenants.id, id));
    await queue.schedules.set(tx, digestSchedule({ id, timeZone }));
  });
}

/** Its jobs that still wait find nobody, and end as cancelled. */
export async function removeTenant(db: Database, id: number): Promise<void> {
  await db.transaction(async (tx) => {
    await queue.schedules.remove(tx, digestName(id));
    await tx.delete(tenants).where(eq(tenants.id, id));
  });
}
