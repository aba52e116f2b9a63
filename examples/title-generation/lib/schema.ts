import { bigint, index, pgTable, text, timestamp, uuid } from 'drizzle-orm/pg-core';

export * from 'drizzle-queue/schema';
export * from 'drizzle-queue/schema/control';

export const chats = pgTable(
  'chats',
  {
    id: uuid('id').primaryKey().defaultRandom(),
    userId: text('user_id').notNull(),
    /** What the model has called it. */
    title: text('title'),
    /** The job that does that. */
    titleJobId: bigint('title_job_id', { mode: 'number' }),
    startedAt: timestamp('started_at', { withTimezone: true }).notNull().defaultNow(),
  },
  (t) => [index('chats_of_user_idx').on(t.userId, t.startedAt)],
);

export const messages = pgTable(
  'messages',
  {
    id: bigint('id', { mode: 'number' }).primaryKey().generatedAlwaysAsIdentity(),
    chatId: uuid('chat_id')
      .notNull()
      .references(() => chats.id, { onDelete: 'cascade' }),
    text: text('text').notNull(),
  },
  (t) => [index('messages_of_chat_idx').on(t.chatId, t.id)],
);
