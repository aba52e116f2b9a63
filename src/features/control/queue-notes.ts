import { bigint, type pgTable, primaryKey, text, timestamp } from 'drizzle-orm/pg-core';
import type {
  BigintColumn,
  Identity,
  InSchema,
  NotNull,
  TextColumn,
  TextsColumn,
  TimestampColumn,
} from '../../core/schema/column-types.ts';
import type { DeclareTable } from '../../core/schema/declare-table.ts';

/** The columns of `queue_notes`. */
export type NoteColumns = {
  id: Identity<NotNull<BigintColumn>>;
  queue: NotNull<TextColumn>;
  dueAt: NotNull<TimestampColumn>;
  groupKeys: NotNull<TextsColumn>;
};

/** `queue_notes` under any name. */
export type NotesTable<
  TName extends string = string,
  TSchema extends string | undefined = string | undefined,
> = InSchema<ReturnType<typeof pgTable<TName, NoteColumns>>, TSchema>;

/**
 * `queue_notes`: from when on claims should look at some groups, because a job is due or a slot is free. A
 * transaction that enqueues a job, or ends a hold that others may wait for, only inserts here. It waits
 * for no other transaction, and no other transaction waits for it, even if it stays open for minutes.
 * Claims use the notes and delete them, usually within milliseconds. A note is only a hint: limits are
 * never exceeded, whatever the notes say.
 */
export function defineNotesTable<TName extends string, TSchema extends string | undefined>(
  table: DeclareTable,
  name: TName,
): NotesTable<TName, TSchema> {
  const notes = table(
    name,
    {
      id: bigint('id', { mode: 'number' }).notNull().generatedAlwaysAsIdentity(),
      dueAt: timestamp('due_at', { withTimezone: true }).notNull(),
      queue: text('queue').notNull(),
      groupKeys: text('group_keys').array().notNull(),
    },
    (t) => [primaryKey({ name: `${name}_pkey`, columns: [t.queue, t.dueAt, t.id] })],
  );
  // The builders above declare these columns, through the reader's own drizzle-orm.
  return notes as unknown as NotesTable<TName, TSchema>;
}
