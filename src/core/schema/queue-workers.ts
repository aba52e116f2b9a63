import { bigint, integer, jsonb, type pgTable, text, timestamp } from 'drizzle-orm/pg-core';
import type {
  BigintColumn,
  Identity,
  InSchema,
  IntegerColumn,
  JsonColumn,
  NotNull,
  Primary,
  TextColumn,
  TimestampColumn,
  WithDefault,
} from './column-types.ts';
import type { DeclareTable } from './declare-table.ts';

/** The columns of `queue_workers`. */
export type WorkerColumns = {
  id: Identity<Primary<BigintColumn>>;
  name: NotNull<TextColumn>;
  queues: NotNull<JsonColumn<string[]>>;
  kinds: JsonColumn<string[]>;
  startedAt: WithDefault<NotNull<TimestampColumn>>;
  seenAt: WithDefault<NotNull<TimestampColumn>>;
  session: IntegerColumn;
  node: TextColumn;
};

/** `queue_workers` under any name. */
export type WorkersTable<
  TName extends string = string,
  TSchema extends string | undefined = string | undefined,
> = InSchema<ReturnType<typeof pgTable<TName, WorkerColumns>>, TSchema>;

/**
 * `queue_workers`: which workers are alive. A job is held while its `worker_id` is in this table; when a
 * worker's row is removed, its jobs are due again. There is no foreign key, because each claim would then
 * lock the worker's row once per job.
 */
export function defineWorkersTable<TName extends string, TSchema extends string | undefined>(
  table: DeclareTable,
  name: TName,
): WorkersTable<TName, TSchema> {
  const workers = table(name, {
    id: bigint('id', { mode: 'number' }).primaryKey().generatedAlwaysAsIdentity(),
    name: text('name').notNull(),
    queues: jsonb('queues').$type<string[]>().notNull(),
    // Those that it has handlers for; null for a worker of an older version, which does not say.
    kinds: jsonb('kinds').$type<string[]>(),
    startedAt: timestamp('started_at', { withTimezone: true }).notNull().defaultNow(),
    seenAt: timestamp('seen_at', { withTimezone: true }).notNull().defaultNow(),
    session: integer('session'),
    // The server that holds the session's lock, where there are several behind one address.
    node: text('node'),
  });
  // The builders above declare these columns, through the reader's own drizzle-orm.
  return workers as unknown as WorkersTable<TName, TSchema>;
}
