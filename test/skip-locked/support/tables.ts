import {
  integer,
  jsonb,
  pgSchema,
  pgTable,
  primaryKey,
  serial,
  smallint,
  text,
  timestamp,
} from 'drizzle-orm/pg-core';
import type postgres from 'postgres';

/** A table with a key of one column, and columns whose names in SQL are others than in TypeScript. */
export const urls = pgTable('urls', {
  id: serial('id').primaryKey(),
  url: text('the_url').notNull(),
  depth: smallint('depth').notNull().default(0),
  foundAt: timestamp('found_at', { withTimezone: true }).notNull().defaultNow(),
  fetchedBy: text('fetched_by'),
  headers: jsonb('headers').$type<Record<string, string>>().notNull().default({}),
});

/** The same under another name, to move rows to. */
export const archivedUrls = pgTable('archived_urls', {
  id: integer('id').primaryKey(),
  url: text('the_url').notNull(),
  depth: smallint('depth').notNull(),
  foundAt: timestamp('found_at', { withTimezone: true }).notNull(),
  fetchedBy: text('fetched_by'),
  headers: jsonb('headers').$type<Record<string, string>>().notNull(),
});

/** Refers to `urls`. */
export const links = pgTable('links', {
  id: serial('id').primaryKey(),
  urlId: integer('url_id')
    .notNull()
    .references(() => urls.id),
});

/** A key of two columns, in a Postgres schema, under names that need quoting. */
export const orderLines = pgSchema('old "shop"').table(
  'Order Lines',
  {
    order: integer('order').notNull(),
    line: integer('Line no.').notNull(),
    state: text('state').notNull().default('open'),
  },
  (table) => [primaryKey({ columns: [table.order, table.line] })],
);

/** No key at all. */
export const log = pgTable('log', { line: text('line').notNull() });

/** Creates the tables, empty. Autovacuum is off, so that statistics are only what a test makes them. */
export async function createTables(client: postgres.Sql): Promise<void> {
  await client.unsafe(`
    create table urls (
      id serial primary key, the_url text not null, depth smallint not null default 0,
      found_at timestamptz not null default now(), fetched_by text, headers jsonb not null default '{}'
    ) with (autovacuum_enabled = off);
    create table archived_urls (
      id int primary key, the_url text not null, depth smallint not null, found_at timestamptz not null, fetched_by text,
      headers jsonb not null
    );
    create table links (id serial primary key, url_id int not null references urls (id));
    create schema "old ""shop""";
    create table "old ""shop"""."Order Lines" (
      "order" int not null, "Line no." int not null, state text not null default 'open', primary key ("order", "Line no.")
    ) with (autovacuum_enabled = off);
    create table log (line text not null);`);
}

/** Empties the tables and puts in `count` URLs (ids from 1), as many order lines (orders of ten lines) and lines of log. */
export async function fillTables(client: postgres.Sql, count: number): Promise<void> {
  await client.unsafe(`
    truncate urls, archived_urls, links, "old ""shop"""."Order Lines", log restart identity;
    insert into urls (the_url, depth) select 'https://example.org/' || n, n % 3 from generate_series(1, ${count}) as n;
    insert into "old ""shop"""."Order Lines" select n / 10, n % 10 from generate_series(0, ${count - 1}) as n;
    insert into log select 'line ' || n from generate_series(1, ${count}) as n;`);
}
