import { index, type pgTable, primaryKey, text, timestamp } from 'drizzle-orm/pg-core';
import type { InSchema, NotNull, TextColumn, TimestampColumn } from '../../core/schema/column-types.ts';
import type { DeclareTable } from '../../core/schema/declare-table.ts';

/** The columns of `queue_keys`. */
export type KeyColumns = {
  queue: NotNull<TextColumn>;
  kind: NotNull<TextColumn>;
  key: NotNull<TextColumn>;
  until: NotNull<TimestampColumn>;
};

/** `queue_keys` under any name. */
export type KeysTable<
  TName extends string = string,
  TSchema extends string | undefined = string | undefined,
> = InSchema<ReturnType<typeof pgTable<TName, KeyColumns>>, TSchema>;

/**
 * `queue_keys`: keys that refuse another job until a time, whatever becomes of the job that took them: those
 * of `throttle` and of `unique: { forMs }`. Rows whose time has passed are pruned.
 */
export function defineKeysTable<TName extends string, TSchema extends string | undefined>(
  table: DeclareTable,
  name: TName,
): KeysTable<TName, TSchema> {
  const keys = table(
    name,
    {
      queue: text('queue').notNull(),
      kind: text('kind').notNull(),
      key: text('key').notNull(),
      until: timestamp('until', { withTimezone: true }).notNull(),
    },
    (t) => [
      primaryKey({ name: `${name}_pkey`, columns: [t.queue, t.kind, t.key] }),
      // Pruning reads the oldest.
      index(`${name}_until_idx`).on(t.until),
    ],
  );
  // The builders above declare these columns, through the reader's own drizzle-orm.
  return keys as unknown as KeysTable<TName, TSchema>;
}
