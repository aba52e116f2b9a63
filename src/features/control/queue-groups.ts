import { sql } from 'drizzle-orm';
import { bigint, index, jsonb, type pgTable, primaryKey, text, timestamp } from 'drizzle-orm/pg-core';
import type {
  BigintColumn,
  BigintsColumn,
  InSchema,
  JsonColumn,
  NotNull,
  TextColumn,
  TimestampColumn,
  WithDefault,
} from '../../core/schema/column-types.ts';
import type { DeclareTable } from '../../core/schema/declare-table.ts';
import type { RateUsed } from './queue-usage.ts';

/** The columns of `queue_groups`. */
export type GroupColumns = {
  queue: NotNull<TextColumn>;
  groupKey: NotNull<TextColumn>;
  readyAt: NotNull<TimestampColumn>;
  turn: WithDefault<NotNull<BigintColumn>>;
  rateUsed: WithDefault<NotNull<JsonColumn<RateUsed>>>;
  held: WithDefault<NotNull<BigintsColumn>>;
  boundedSince: TimestampColumn;
};

/** `queue_groups` under any name. */
export type GroupsTable<
  TName extends string = string,
  TSchema extends string | undefined = string | undefined,
> = InSchema<ReturnType<typeof pgTable<TName, GroupColumns>>, TSchema>;

/**
 * `queue_groups`: when claims look at a group next, and in which order. Only claims write it; they also fold
 * in the notes from `queue_notes`.
 *
 * - `ready_at`: `-infinity` while the group is in the ring of those with due jobs. A time for a group that
 *   was idle and has work from then on, or whose rate is used up until then. `infinity` for a group that
 *   claims skip until a note comes, because nothing is due or it is at its limit.
 * - `held`: which of its jobs may be held. It only tells where to look: a job counts while its own row says
 *   that a living worker holds it. So a worker that dies frees its slots at once, and a leftover id does not
 *   count.
 * - `bounded_since`: since when its claims let only so many of its jobs be held at once; null where the last
 *   one did not. Only then may a job wait for the end of another, which leaves no note otherwise.
 * - `turn`: its place in the ring. Every change of the row raises it, so a claim can tell that the row is
 *   still as its snapshot shows it.
 */
export function defineGroupsTable<TName extends string, TSchema extends string | undefined>(
  table: DeclareTable,
  name: TName,
): GroupsTable<TName, TSchema> {
  const groups = table(
    name,
    {
      queue: text('queue').notNull(),
      groupKey: text('group_key').notNull(),
      readyAt: timestamp('ready_at', { withTimezone: true }).notNull(),
      turn: bigint('turn', { mode: 'number' }).notNull().default(0),
      rateUsed: jsonb('rate_used').$type<RateUsed>().notNull().default({}),
      held: bigint('held', { mode: 'number' }).array().notNull().default([]),
      boundedSince: timestamp('bounded_since', { withTimezone: true }),
    },
    (t) => [
      primaryKey({ name: `${name}_pkey`, columns: [t.queue, t.groupKey] }),
      // The predicate always holds, but only claims repeat it: a look for one group would walk this index.
      index(`${name}_ready_idx`).on(t.queue, t.readyAt, t.turn).where(sql`turn >= 0`),
    ],
  );
  // The builders above declare these columns, through the reader's own drizzle-orm.
  return groups as unknown as GroupsTable<TName, TSchema>;
}
