import { bigint, integer, jsonb, pgTable, primaryKey, text, uuid } from 'drizzle-orm/pg-core';

export * from 'drizzle-queue/schema';
export * from 'drizzle-queue/schema/workflows';

export interface Report {
  readonly pages: number;
  readonly words: number;
  /** The pages that could not be read, and why. */
  readonly unread: readonly { readonly page: number; readonly reason: string }[];
}

export const documents = pgTable('documents', {
  id: uuid('id').primaryKey().defaultRandom(),
  title: text('title').notNull(),
  pageCount: integer('page_count').notNull(),
  /** Of the flow that works on it. */
  flowId: bigint('flow_id', { mode: 'number' }),
  report: jsonb('report').$type<Report>(),
});

/** Text is null until the page is read. */
export const pages = pgTable(
  'pages',
  {
    documentId: uuid('document_id').notNull(),
    page: integer('page').notNull(),
    scan: text('scan').notNull(),
    text: text('text'),
  },
  (table) => [primaryKey({ columns: [table.documentId, table.page] })],
);
