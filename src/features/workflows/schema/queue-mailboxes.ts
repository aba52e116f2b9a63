import {
  bigint,
  boolean,
  integer,
  jsonb,
  type pgTable,
  primaryKey,
  text,
  timestamp,
} from 'drizzle-orm/pg-core';
import type {
  BigintColumn,
  BooleanColumn,
  InSchema,
  IntegerColumn,
  JsonColumn,
  NotNull,
  TextColumn,
  TimestampColumn,
  WithDefault,
} from '../../../core/schema/column-types.ts';
import type { DeclareTable } from '../../../core/schema/declare-table.ts';

/** One signal in a mailbox. */
export interface SentSignal {
  /** The sender's own, so that it can tell whether its signal was kept. */
  readonly id: string;
  readonly value: unknown;
  /** A signal with the key of another is not kept. */
  readonly key?: string;
}

/** The columns of `queue_mailboxes`. */
export type MailboxColumns = {
  jobId: NotNull<BigintColumn>;
  queue: NotNull<TextColumn>;
  name: NotNull<TextColumn>;
  sent: WithDefault<NotNull<JsonColumn<readonly SentSignal[]>>>;
  received: WithDefault<NotNull<IntegerColumn>>;
  waiting: WithDefault<NotNull<BooleanColumn>>;
  updatedAt: WithDefault<NotNull<TimestampColumn>>;
};

/** `queue_mailboxes` under any name. */
export type MailboxesTable<
  TName extends string = string,
  TSchema extends string | undefined = string | undefined,
> = InSchema<ReturnType<typeof pgTable<TName, MailboxColumns>>, TSchema>;

/**
 * `queue_mailboxes`: the signals that were sent to jobs, one row per job and name. Both sides of a wait write
 * it, the sender and the waiting job, so neither can miss the other.
 *
 * - `sent` has all signals, oldest first. Nothing is taken out while the job lives, so an attempt that dies
 *   after it has received one has consumed nothing.
 * - `received` is how many of them the steps of the job have.
 * - `waiting`: the job waits for the next, or is about to. Its sender makes the job due.
 */
export function defineMailboxesTable<TName extends string, TSchema extends string | undefined>(
  table: DeclareTable,
  name: TName,
): MailboxesTable<TName, TSchema> {
  const mailboxes = table(
    name,
    {
      jobId: bigint('job_id', { mode: 'number' }).notNull(),
      updatedAt: timestamp('updated_at', { withTimezone: true }).notNull().defaultNow(),
      received: integer('received').notNull().default(0),
      waiting: boolean('waiting').notNull().default(false),
      queue: text('queue').notNull(),
      name: text('name').notNull(),
      sent: jsonb('sent').$type<readonly SentSignal[]>().notNull().default([]),
    },
    (t) => [primaryKey({ name: `${name}_pkey`, columns: [t.jobId, t.queue, t.name] })],
  );
  // The builders above declare these columns, through the reader's own drizzle-orm.
  return mailboxes as unknown as MailboxesTable<TName, TSchema>;
}
