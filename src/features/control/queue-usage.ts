import { jsonb, type pgTable, primaryKey, text } from 'drizzle-orm/pg-core';
import type {
  InSchema,
  JsonColumn,
  NotNull,
  TextColumn,
  WithDefault,
} from '../../core/schema/column-types.ts';
import type { DeclareTable } from '../../core/schema/declare-table.ts';

/**
 * The slots that each worker has of a limit, by the worker's id: how many it has, how many it could use, and
 * its `era`, which grows when it no longer knows what became of an earlier statement. The slots of a worker
 * that is not in `queue_workers` are free.
 */
export type Leases = Readonly<Record<string, readonly [has: number, wants: number, era: number]>>;

/** Starts within the last window, by the number of a twentieth of it since 1970. */
export type RateUsed = Readonly<Record<string, number>>;

/** The columns of `queue_usage`. */
export type UsageColumns = {
  queue: NotNull<TextColumn>;
  kind: WithDefault<NotNull<TextColumn>>;
  leases: WithDefault<NotNull<JsonColumn<Leases>>>;
  rateUsed: WithDefault<NotNull<JsonColumn<RateUsed>>>;
};

/** `queue_usage` under any name. */
export type UsageTable<
  TName extends string = string,
  TSchema extends string | undefined = string | undefined,
> = InSchema<ReturnType<typeof pgTable<TName, UsageColumns>>, TSchema>;

/**
 * `queue_usage`: what is in use of the limit of a queue (with the `kind` ''), or of a kind in it. Only
 * workers write it. It is separate from `queue_limits`, so that an open transaction that changes a limit does
 * not block workers.
 */
export function defineUsageTable<TName extends string, TSchema extends string | undefined>(
  table: DeclareTable,
  name: TName,
): UsageTable<TName, TSchema> {
  const usage = table(
    name,
    {
      queue: text('queue').notNull(),
      kind: text('kind').notNull().default(''),
      leases: jsonb('leases').$type<Leases>().notNull().default({}),
      rateUsed: jsonb('rate_used').$type<RateUsed>().notNull().default({}),
    },
    (t) => [primaryKey({ name: `${name}_pkey`, columns: [t.queue, t.kind] })],
  );
  // The builders above declare these columns, through the reader's own drizzle-orm.
  return usage as unknown as UsageTable<TName, TSchema>;
}
