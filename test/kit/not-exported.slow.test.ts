import { library, notExported } from './not-exported.ts';

notExported([
  {
    what: 'nested the tables in an object',
    schema: `import { createQueueTables } from ${library}; export const tables = createQueueTables();`,
    made: [],
    message: "None of the queue's tables exists in this database",
    fix: 'the tables are not exported, or are exported inside an object, which drizzle-kit ignores',
  },
  {
    what: 'forgot the tables',
    schema: `import { integer, pgTable } from 'drizzle-orm/pg-core'; export const orders = pgTable('orders', { id: integer('id') });`,
    made: ['orders'],
    message: "None of the queue's tables exists in this database, although Drizzle has run migrations on it",
    fix: 'the tables are not exported, or are exported inside an object',
  },
]);
