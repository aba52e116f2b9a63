import { sql } from 'drizzle-orm';
import { bigint, check, integer, type pgTable, primaryKey, text, timestamp } from 'drizzle-orm/pg-core';
import type {
  BigintColumn,
  InSchema,
  IntegerColumn,
  NotNull,
  TextColumn,
  TimestampColumn,
  WithDefault,
} from '../../core/schema/column-types.ts';
import type { DeclareTable } from '../../core/schema/declare-table.ts';

/** The columns of `queue_limits`. */
export type LimitColumns = {
  queue: NotNull<TextColumn>;
  kind: WithDefault<NotNull<TextColumn>>;
  groupKey: WithDefault<NotNull<TextColumn>>;
  concurrency: IntegerColumn;
  rateLimit: IntegerColumn;
  ratePerMs: BigintColumn;
  weight: IntegerColumn;
  updatedAt: WithDefault<NotNull<TimestampColumn>>;
};

/** `queue_limits` under any name. */
export type LimitsTable<
  TName extends string = string,
  TSchema extends string | undefined = string | undefined,
> = InSchema<ReturnType<typeof pgTable<TName, LimitColumns>>, TSchema>;

/**
 * `queue_limits`: limits that were set at run time. A row with the `kind` '' and the `group_key` '' is of a
 * queue, one with a `kind` of that kind in the queue. The `group_key` '*' is of every group of the queue,
 * another one of that group alone. A setting that is null is as the code declares it.
 */
export function defineLimitsTable<TName extends string, TSchema extends string | undefined>(
  table: DeclareTable,
  name: TName,
): LimitsTable<TName, TSchema> {
  const limits = table(
    name,
    {
      queue: text('queue').notNull(),
      kind: text('kind').notNull().default(''),
      groupKey: text('group_key').notNull().default(''),
      concurrency: integer('concurrency'),
      rateLimit: integer('rate_limit'),
      ratePerMs: bigint('rate_per_ms', { mode: 'number' }),
      weight: integer('weight'),
      updatedAt: timestamp('updated_at', { withTimezone: true }).notNull().defaultNow(),
    },
    (t) => [
      primaryKey({ name: `${name}_pkey`, columns: [t.queue, t.kind, t.groupKey] }),
      check(`${name}_rate_check`, sql`num_nonnulls(rate_limit, rate_per_ms) <> 1`),
    ],
  );
  // The builders above declare these columns, through the reader's own drizzle-orm.
  return limits as unknown as LimitsTable<TName, TSchema>;
}
