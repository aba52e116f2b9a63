import { bigint, jsonb, pgTable, text, uuid } from 'drizzle-orm/pg-core';
import type { Manifest } from './manifest.ts';

export * from 'drizzle-queue/schema';

export const images = pgTable('images', {
  id: uuid('id').primaryKey(),
  name: text('name').notNull(),
  /** That it has failed is known by its job. */
  state: text('state', { enum: ['processing', 'ready', 'cancelled'] })
    .notNull()
    .default('processing'),
  jobId: bigint('job_id', { mode: 'number' }).notNull(),
  manifest: jsonb('manifest').$type<Manifest>(),
});
