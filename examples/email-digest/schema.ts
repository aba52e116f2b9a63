import { isNull } from 'drizzle-orm';
import { bigint, index, pgTable, text, timestamp, unique } from 'drizzle-orm/pg-core';

export * from 'drizzle-queue/schema';
export * from 'drizzle-queue/schema/control';

const id = () => bigint('id', { mode: 'number' }).primaryKey().generatedAlwaysAsIdentity();
const time = (name: string) => timestamp(name, { withTimezone: true });

export const tenants = pgTable('tenants', {
  id: id(),
  name: text('name').notNull(),
  email: text('email').notNull(),
  timeZone: text('time_zone').notNull(),
});

const tenantId = () =>
  bigint('tenant_id', { mode: 'number' })
    .notNull()
    .references(() => tenants.id, { onDelete: 'cascade' });

/** One mail of a tenant: all that has happened until its period's end and is in no mail before. */
export const digests = pgTable(
  'digests',
  { id: id(), tenantId: tenantId(), periodEnd: time('period_end').notNull(), sentAt: time('sent_at') },
  (t) => [unique().on(t.tenantId, t.periodEnd)],
);

export const events = pgTable(
  'events',
  {
    id: id(),
    tenantId: tenantId(),
    text: text('text').notNull(),
    happenedAt: time('happened_at').notNull().defaultNow(),
    /** The digest that it belongs to. */
    digestId: bigint('digest_id', { mode: 'number' }).references(() => digests.id),
  },
  (t) => [index('events_in_no_digest_idx').on(t.tenantId, t.happenedAt).where(isNull(t.digestId))],
);
