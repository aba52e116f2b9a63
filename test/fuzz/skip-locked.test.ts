import { sql } from 'drizzle-orm';
import * as skipLocked from 'drizzle-queue/skip-locked';
import fc from 'fast-check';
import { beforeAll, expect, test } from 'vitest';
import { urls } from '../skip-locked/support/tables.ts';
import { depth } from '../support/depth.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { useCanary } from './canary.ts';
import * as hostile from './hostile.ts';
import { attempt, BOTH, holds } from './refusal.ts';

const database = useTestDatabase();

beforeAll(async () => {
  await database.client`
    create table urls (id serial primary key, the_url text not null, depth smallint not null default 0,
      found_at timestamptz not null default now(), fetched_by text, headers jsonb not null default '{}')`;
});

// After the table that these tests need.
useCanary(database);

/** The functions as a caller without types sees them. */
const untyped = skipLocked as unknown as Record<string, (...given: unknown[]) => PromiseLike<unknown[]>>;

const db = hostile.mostly(fc.constant('the database'));
const table = hostile.mostly(fc.constant('the table'));
/** Arguments are generated before there is a database; and a table would fill the report of a failure. */
const given = (value: unknown) =>
  value === 'the database' ? database.db : value === 'the table' ? urls : value;

const expression = fc.oneof(
  hostile.text.map((text) => sql`${urls.url} <> ${text.replaceAll('\0', '')}`),
  fc.constant(sql`${urls.depth} >= 0`),
);
const which = {
  where: expression,
  orderBy: fc.oneof(fc.constant(urls.id), fc.array(expression, { maxLength: 2 })),
  limit: fc.integer({ min: 1, max: 3 }),
  strength: fc.constantFrom('update', 'no key update'),
  wait: fc.constantFrom('skip locked', 'nowait'),
};

const calls: Readonly<Record<string, fc.Arbitrary<unknown[]>>> = {
  lockRows: fc.tuple(db, table, hostile.options(which)),
  popRows: fc.tuple(db, table, hostile.options(which)),
  holdRows: fc.tuple(
    db,
    table,
    hostile.options({ ...which, set: fc.dictionary(fc.constantFrom('fetchedBy', 'url'), hostile.name) }),
  ),
};

test.each(Object.entries(calls))(
  '%s answers, or says what is wrong',
  { timeout: 240_000 },
  async (name, args) => {
    const seen = new Set<string>();
    await holds(
      fc.asyncProperty(args, async (args) => {
        await database.client`delete from urls`;
        await database.client`insert into urls (the_url) select n::text from generate_series(1, 5) as n`;
        seen.add(
          await attempt(async () => {
            const rows = await untyped[name]?.(...args.map(given));
            const { limit = 1 } = Object(args[2]);
            expect(rows?.length, 'never more than the limit').toBeLessThanOrEqual(Number(limit));
          }),
        );
      }),
      depth(100, 400),
    );
    expect([...seen].sort()).toEqual(BOTH);
  },
);
