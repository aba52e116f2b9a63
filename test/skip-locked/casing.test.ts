import { eq, isNull } from 'drizzle-orm';
import { pgTable, primaryKey, serial, text } from 'drizzle-orm/pg-core';
import { drizzle } from 'drizzle-orm/postgres-js';
import { holdRows, lockRows, popRows } from 'drizzle-queue/skip-locked';
import { describe, expect, test } from 'vitest';
import { useTestDatabase } from '../support/test-database.ts';

const database = useTestDatabase();

const pages = pgTable('pages', { pageId: serial().primaryKey(), foundBy: text() });
const words = pgTable('words', { pageId: serial(), theWord: text() }, (table) => [
  primaryKey({ columns: [table.pageId, table.theWord] }),
]);

// drizzle-orm 1.0 has moved this setting into the table's own declaration.
describe.skipIf(process.env.DRIZZLE === 'v1')("columns that the database's `casing` names", () => {
  test('are found', async () => {
    await database.client.unsafe(`
      create table pages (page_id serial primary key, found_by text);
      create table words (page_id int, the_word text, primary key (page_id, the_word));
      insert into pages select from generate_series(1, 3);
      insert into words values (1, 'a'), (1, 'b')`);
    const config = { client: database.client, casing: 'snake_case' } as const;
    const db = drizzle(config);
    const byId = { orderBy: pages.pageId, where: isNull(pages.foundBy) };
    expect(await popRows(db, pages, byId)).toEqual([{ pageId: 1, foundBy: null }]);
    expect(await holdRows(db, pages, { ...byId, set: { foundBy: 'me' } })).toEqual([
      { pageId: 2, foundBy: 'me' },
    ]);
    expect(await lockRows(db, pages, byId)).toEqual([{ pageId: 3, foundBy: null }]);
    expect(await popRows(db, words, { where: eq(words.theWord, 'b') })).toEqual([
      { pageId: 1, theWord: 'b' },
    ]);
  });
});
