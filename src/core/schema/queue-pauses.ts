import { type pgTable, text, timestamp } from 'drizzle-orm/pg-core';
import type { InSchema, NotNull, Primary, TextColumn, TimestampColumn, WithDefault } from './column-types.ts';
import type { DeclareTable } from './declare-table.ts';

/** The columns of `queue_pauses`. */
export type PauseColumns = {
  queue: Primary<TextColumn>;
  pausedAt: WithDefault<NotNull<TimestampColumn>>;
};

/** `queue_pauses` under any name. */
export type PausesTable<
  TName extends string = string,
  TSchema extends string | undefined = string | undefined,
> = InSchema<ReturnType<typeof pgTable<TName, PauseColumns>>, TSchema>;

/** `queue_pauses`: which queues are paused, since when. A queue can be paused before it has any job. */
export function definePausesTable<TName extends string, TSchema extends string | undefined>(
  table: DeclareTable,
  name: TName,
): PausesTable<TName, TSchema> {
  const pauses = table(name, {
    queue: text('queue').primaryKey(),
    pausedAt: timestamp('paused_at', { withTimezone: true }).notNull().defaultNow(),
  });
  // The builders above declare these columns, through the reader's own drizzle-orm.
  return pauses as unknown as PausesTable<TName, TSchema>;
}
