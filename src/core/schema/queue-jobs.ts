import { sql } from 'drizzle-orm';
import {
  bigint,
  check,
  index,
  integer,
  jsonb,
  type pgTable,
  primaryKey,
  smallint,
  text,
  timestamp,
  uniqueIndex,
} from 'drizzle-orm/pg-core';
import type { AttemptError } from './attempt-error.ts';
import type {
  BigintColumn,
  ColumnBuilders,
  Identity,
  InSchema,
  IntegerColumn,
  JsonColumn,
  NoColumns,
  NotNull,
  SmallintColumn,
  TextColumn,
  TimestampColumn,
  WithDefault,
} from './column-types.ts';
import type { DeclareTable } from './declare-table.ts';

/** The columns of `queue_jobs`. */
export type JobColumns = {
  id: Identity<NotNull<BigintColumn>>;
  queue: NotNull<TextColumn>;
  kind: NotNull<TextColumn>;
  payload: NotNull<JsonColumn>;
  priority: WithDefault<NotNull<SmallintColumn>>;
  runAt: WithDefault<NotNull<TimestampColumn>>;
  attempt: WithDefault<NotNull<SmallintColumn>>;
  maxAttempts: NotNull<SmallintColumn>;
  fence: WithDefault<NotNull<BigintColumn>>;
  workerId: BigintColumn;
  claimedAt: TimestampColumn;
  batchId: BigintColumn;
  blockers: IntegerColumn;
  cost: SmallintColumn;
  uniqueKey: TextColumn;
  waitingKey: TextColumn;
  groupKey: TextColumn;
  errors: WithDefault<NotNull<JsonColumn<AttemptError[]>>>;
  metadata: WithDefault<NotNull<JsonColumn<Record<string, unknown>>>>;
  cancelReason: TextColumn;
  progress: JsonColumn;
  createdAt: WithDefault<NotNull<TimestampColumn>>;
};

/** `queue_jobs` under any name. */
export type JobsTable<
  TName extends string = string,
  TSchema extends string | undefined = string | undefined,
  TColumns extends ColumnBuilders = NoColumns,
> = InSchema<ReturnType<typeof pgTable<TName, JobColumns & TColumns>>, TSchema>;

/**
 * `queue_jobs`: the work still to do. A job is *due* when `run_at` has passed and no worker holds it. It is
 * *held* while `worker_id` names a worker. Its attempt has *begun* once `claimed_at` is set, as a rule by the
 * claim. The statement that writes a job's result deletes it here, so this table stays as small as the live
 * work.
 *
 * Two rules keep it fast:
 * - No index contains, or has in its predicate, a column that a claim writes (`attempt`, `fence`,
 *   `worker_id`, `claimed_at`) or that is written while the job is held (`cancel_reason`, `progress`). Those
 *   writes are then HOT updates, which touch no index.
 * - `queue` is in every key, so the table can be partitioned or distributed by queue without a change of
 *   storage.
 *
 * The widest columns come first: Postgres pads each to its alignment, and a claim copies the whole row.
 *
 * The columns of single features are null when the feature is unused, which takes no room: `group_key` and
 * `cost` belong to limits, `waiting_key` is the key that a job has until its first claim. `batch_id` is
 * that of the set of jobs for whose end something waits. `blockers` says that a job waits. A positive number
 * counts the sets that it waits for before it begins, a negative one those that it waits for in its middle.
 * With 0 it waits for something else, or for its claim. It is null again once an attempt has failed, so that
 * nothing but time ends the backoff.
 */
export function defineJobsTable<
  TName extends string,
  TSchema extends string | undefined,
  TColumns extends ColumnBuilders,
>(table: DeclareTable, name: TName, ownColumns: NoColumns): JobsTable<TName, TSchema, TColumns> {
  const jobs = table(
    name,
    {
      id: bigint('id', { mode: 'number' }).notNull().generatedAlwaysAsIdentity(),
      runAt: timestamp('run_at', { withTimezone: true }).notNull().defaultNow(),
      createdAt: timestamp('created_at', { withTimezone: true }).notNull().defaultNow(),
      claimedAt: timestamp('claimed_at', { withTimezone: true }),
      workerId: bigint('worker_id', { mode: 'number' }),
      // Each life of an id begins with a fence of its own: the milliseconds of its insert. From 0, an attempt
      // from before a restored backup, a failover or a TRUNCATE would match a new job that has its id.
      // Postgres prints the default in just this form, so that drizzle-kit sees no change in it.
      fence: bigint('fence', { mode: 'number' })
        .notNull()
        .default(sql`floor((EXTRACT(epoch FROM statement_timestamp()) * (1000)::numeric))`),
      batchId: bigint('batch_id', { mode: 'number' }),
      blockers: integer('blockers'),
      priority: smallint('priority').notNull().default(5),
      attempt: smallint('attempt').notNull().default(0),
      maxAttempts: smallint('max_attempts').notNull(),
      // Named `weight` in the database: workers of an earlier version write this column by that name as they
      // settle jobs, so a migration beside them cannot rename it.
      cost: smallint('weight'),
      queue: text('queue').notNull(),
      kind: text('kind').notNull(),
      uniqueKey: text('unique_key'),
      waitingKey: text('waiting_key'),
      groupKey: text('group_key'),
      payload: jsonb('payload').notNull(),
      errors: jsonb('errors').$type<AttemptError[]>().notNull().default([]),
      metadata: jsonb('metadata').$type<Record<string, unknown>>().notNull().default({}),
      // Usually null, which takes no room. Both are written while the job is held, so no index contains them.
      cancelReason: text('cancel_reason'),
      progress: jsonb('progress'),
      ...ownColumns,
    },
    (t) => [
      primaryKey({ name: `${name}_pkey`, columns: [t.id, t.queue] }),
      // `priority` comes first, or a bare `queue = …` in another statement would tempt the planner to walk a
      // whole queue. Only the claim repeats the predicate: PostgreSQL 18 skips over a leading column, and
      // without a predicate statements that name ids walked this index (47–74 ms for 200 jobs instead of 3).
      // Jobs of groups stand in the next index, so a plain claim cannot take one.
      index(`${name}_claim_idx`).on(t.priority, t.queue, t.runAt, t.id).where(sql`group_key is null`),
      index(`${name}_group_idx`)
        .on(t.queue, t.groupKey, t.priority, t.runAt, t.id)
        .where(sql`group_key is not null`),
      uniqueIndex(`${name}_unique_key_idx`)
        .on(t.queue, t.kind, t.uniqueKey)
        .where(sql`unique_key is not null`),
      uniqueIndex(`${name}_waiting_key_idx`)
        .on(t.queue, t.kind, t.waitingKey)
        .where(sql`waiting_key is not null`),
      // The members of a batch; no claim changes it.
      index(`${name}_batch_idx`).on(t.batchId).where(sql`batch_id is not null`),
      // Jobs that have failed and are to be tried again, for people. A job that never fails has no entry
      // here, and only the write of a failure, which changes `run_at` besides, makes or changes one.
      index(`${name}_failed_idx`).on(t.queue, t.runAt, t.id).where(sql`errors <> '[]'::jsonb`),
      check(`${name}_priority_check`, sql`priority between 0 and 9`),
    ],
  );
  // The builders above declare these columns. The record type ignores their order, and the app's own columns
  // exist only in the declared type.
  return jobs as unknown as JobsTable<TName, TSchema, TColumns>;
}
