import { sql } from 'drizzle-orm';
import {
  bigint,
  boolean,
  customType,
  date,
  doublePrecision,
  inet,
  integer,
  json,
  jsonb,
  numeric,
  pgEnum,
  text,
  timestamp,
  uuid,
  varchar,
} from 'drizzle-orm/pg-core';
import { createQueueTables } from 'drizzle-queue/schema';

export const plan = pgEnum('Plan', ['free', 'paid']);

/** Stored as a text, and a Set in the app. */
const wordSet = customType<{ data: ReadonlySet<string>; driverData: string }>({
  dataType: () => 'text',
  toDriver: (words) => [...words].join(' '),
  fromDriver: (words) => new Set(words.split(' ')),
});

/** As SQL itself calls a varchar. */
const shortText = customType<{ data: string; driverData: string }>({
  dataType: () => 'character varying(3)',
});

/** One own column of each sort. */
export const ownColumns = {
  tenantId: text('tenant_id').notNull(),
  region: varchar('region', { length: 3 }),
  seats: integer('seats'),
  cents: bigint('cents', { mode: 'bigint' }),
  score: doublePrecision('score'),
  mass: numeric('mass', { precision: 10, scale: 2 }),
  urgent: boolean('urgent').notNull().default(false),
  day: date('day'),
  startsOn: date('starts_on', { mode: 'date' }),
  endsAt: timestamp('ends_at', { withTimezone: true }),
  wallClock: timestamp('wall_clock'),
  ref: uuid('ref').notNull().defaultRandom(),
  tags: jsonb('tags').$type<readonly string[]>(),
  plan: plan('plan').default('free'),
  words: wordSet('words'),
  rules: json('rules').$type<object>(),
  host: inet('host'),
  code: shortText('code'),
  traceId: text('Trace "id"').$defaultFn(() => 'made by the app'),
};

export const ownTables = createQueueTables({ columns: ownColumns });

/** What drizzle-kit would generate for them, on top of the library's tables. */
export const addOwnColumns = [
  `create type "Plan" as enum ('free', 'paid')`,
  ...['queue_jobs', 'queue_results'].map(
    (table) => `alter table ${table} add column tenant_id text not null, add column region varchar(3),
      add column seats int, add column cents bigint, add column score float8, add column mass numeric(10, 2),
      add column urgent bool not null default false, add column day date, add column starts_on date,
      add column ends_at timestamptz, add column wall_clock timestamp,
      add column ref uuid not null default gen_random_uuid(), add column tags jsonb,
      add column plan "Plan" default 'free', add column words text, add column rules json,
      add column host inet, add column code varchar(3), add column "Trace ""id""" text`,
  ),
].map((statement) => sql.raw(statement));
