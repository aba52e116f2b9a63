import { sql } from 'drizzle-orm';
import {
  bigint,
  check,
  index,
  jsonb,
  type pgTable,
  primaryKey,
  smallint,
  text,
  timestamp,
} from 'drizzle-orm/pg-core';
import type { AttemptError } from './attempt-error.ts';
import type {
  BigintColumn,
  ColumnBuilders,
  InSchema,
  JsonColumn,
  NoColumns,
  NotNull,
  SmallintColumn,
  TextColumn,
  TextColumnOf,
  TimestampColumn,
  WithDefault,
} from './column-types.ts';
import type { DeclareTable } from './declare-table.ts';

/** `completed`: its handler returned. `discarded`: no attempt was left. `cancelled`: it was stopped. */
export type FinalState = 'completed' | 'discarded' | 'cancelled';

/** The columns of `queue_results`. */
export type ResultColumns = {
  jobId: NotNull<BigintColumn>;
  queue: NotNull<TextColumn>;
  kind: NotNull<TextColumn>;
  payload: JsonColumn;
  state: NotNull<TextColumnOf<FinalState>>;
  output: JsonColumn;
  errors: NotNull<JsonColumn<AttemptError[]>>;
  attempt: NotNull<SmallintColumn>;
  maxAttempts: NotNull<SmallintColumn>;
  priority: NotNull<SmallintColumn>;
  fence: NotNull<BigintColumn>;
  batchId: BigintColumn;
  cost: SmallintColumn;
  uniqueKey: TextColumn;
  groupKey: TextColumn;
  metadata: NotNull<JsonColumn<Record<string, unknown>>>;
  workerId: BigintColumn;
  createdAt: NotNull<TimestampColumn>;
  runAt: NotNull<TimestampColumn>;
  claimedAt: TimestampColumn;
  finishedAt: WithDefault<NotNull<TimestampColumn>>;
};

/** `queue_results` under any name. */
export type ResultsTable<
  TName extends string = string,
  TSchema extends string | undefined = string | undefined,
  TColumns extends ColumnBuilders = NoColumns,
> = InSchema<ReturnType<typeof pgTable<TName, ResultColumns & TColumns>>, TSchema>;

/**
 * `queue_results`: what became of a job. It has the columns of the job as it was when it ended, plus `state`,
 * `output` and `finished_at`, so `redrive` can put a discarded job back whole. Not here is what only a live
 * job has: `waiting_key`, `blockers`, `cancel_reason` and `progress`. The fence goes on from where it was, so
 * a worker that held the job in its first life is never its holder in the second. Only the payload of a
 * completed job may be missing (`keepResult: 'outcome'`).
 */
export function defineResultsTable<
  TName extends string,
  TSchema extends string | undefined,
  TColumns extends ColumnBuilders,
>(table: DeclareTable, name: TName, ownColumns: NoColumns): ResultsTable<TName, TSchema, TColumns> {
  const results = table(
    name,
    {
      jobId: bigint('job_id', { mode: 'number' }).notNull(),
      createdAt: timestamp('created_at', { withTimezone: true }).notNull(),
      runAt: timestamp('run_at', { withTimezone: true }).notNull(),
      claimedAt: timestamp('claimed_at', { withTimezone: true }),
      finishedAt: timestamp('finished_at', { withTimezone: true }).notNull().defaultNow(),
      workerId: bigint('worker_id', { mode: 'number' }),
      fence: bigint('fence', { mode: 'number' }).notNull(),
      batchId: bigint('batch_id', { mode: 'number' }),
      priority: smallint('priority').notNull(),
      attempt: smallint('attempt').notNull(),
      maxAttempts: smallint('max_attempts').notNull(),
      // Named `weight` in the database, as in `queue_jobs`.
      cost: smallint('weight'),
      queue: text('queue').notNull(),
      kind: text('kind').notNull(),
      state: text('state').$type<FinalState>().notNull(),
      uniqueKey: text('unique_key'),
      groupKey: text('group_key'),
      // Null: not kept. A payload that is null itself is the JSON null.
      payload: jsonb('payload'),
      output: jsonb('output'),
      errors: jsonb('errors').$type<AttemptError[]>().notNull(),
      metadata: jsonb('metadata').$type<Record<string, unknown>>().notNull(),
      ...ownColumns,
    },
    (t) => [
      primaryKey({ name: `${name}_pkey`, columns: [t.jobId, t.queue] }),
      // Pruning reads the oldest results; without this index it would read the whole history every minute.
      index(`${name}_finished_at_idx`).on(t.finishedAt),
      // The discarded jobs of some hours, among millions that were completed. These have no entry here.
      index(`${name}_discarded_idx`).on(t.finishedAt).where(sql`state = 'discarded'`),
      // Finding what became of a job by its key or its group. Others have no entry here.
      index(`${name}_unique_key_idx`).on(t.uniqueKey, t.jobId).where(sql`unique_key is not null`),
      index(`${name}_group_idx`).on(t.groupKey, t.jobId).where(sql`group_key is not null`),
      // The outputs of a batch's members.
      index(`${name}_batch_idx`).on(t.batchId).where(sql`batch_id is not null`),
      check(`${name}_state_check`, sql`state in ('completed', 'discarded', 'cancelled')`),
    ],
  );
  // The builders above declare these columns. The record type ignores their order, and the app's own columns
  // exist only in the declared type.
  return results as unknown as ResultsTable<TName, TSchema, TColumns>;
}
