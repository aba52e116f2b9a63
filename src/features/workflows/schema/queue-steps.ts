import { bigint, jsonb, type pgTable, primaryKey, smallint, text, timestamp } from 'drizzle-orm/pg-core';
import type {
  BigintColumn,
  InSchema,
  JsonColumn,
  NotNull,
  SmallintColumn,
  TextColumn,
  TextColumnOf,
  TimestampColumn,
  WithDefault,
} from '../../../core/schema/column-types.ts';
import type { DeclareTable } from '../../../core/schema/declare-table.ts';

/** What a step is. */
export type StepKind = 'run' | 'transaction' | 'sleep' | 'signal' | 'first' | 'enqueue' | 'wait' | 'undo';

/** An error as a step keeps it. */
export interface StepErrorRecord {
  readonly name: string;
  readonly message: string;
  readonly stack?: string;
}

/** The columns of `queue_steps`. */
export type StepColumns = {
  jobId: NotNull<BigintColumn>;
  queue: NotNull<TextColumn>;
  name: NotNull<TextColumn>;
  kind: NotNull<TextColumnOf<StepKind>>;
  signal: TextColumn;
  trace: TextColumn;
  output: JsonColumn;
  error: JsonColumn<StepErrorRecord>;
  attempts: WithDefault<NotNull<SmallintColumn>>;
  fence: NotNull<BigintColumn>;
  until: TimestampColumn;
  startedAt: NotNull<TimestampColumn>;
  endedAt: TimestampColumn;
};

/** `queue_steps` under any name. */
export type StepsTable<
  TName extends string = string,
  TSchema extends string | undefined = string | undefined,
> = InSchema<ReturnType<typeof pgTable<TName, StepColumns>>, TSchema>;

/**
 * `queue_steps`: what jobs have done in their middle, and what they wait for. Only the worker that holds a
 * job writes about it.
 *
 * - `ended_at` is null while a step is open: it waits, or has failed and will be tried again. Once it is set,
 *   the row never changes.
 * - `output` is null for a step without one, and for a signal that did not come in time.
 * - `signal` is the name of the signal that a step waits for, or, of a `first`, that it has received.
 *   `until` is when it waits no longer.
 * - `trace` is what an observer of steps has left with a wait, for the attempt after it.
 * - `fence` is that of the attempt that wrote the row, which may repeat its statement.
 */
export function defineStepsTable<TName extends string, TSchema extends string | undefined>(
  table: DeclareTable,
  name: TName,
): StepsTable<TName, TSchema> {
  const steps = table(
    name,
    {
      jobId: bigint('job_id', { mode: 'number' }).notNull(),
      fence: bigint('fence', { mode: 'number' }).notNull(),
      startedAt: timestamp('started_at', { withTimezone: true }).notNull(),
      endedAt: timestamp('ended_at', { withTimezone: true }),
      until: timestamp('until', { withTimezone: true }),
      attempts: smallint('attempts').notNull().default(1),
      queue: text('queue').notNull(),
      name: text('name').notNull(),
      kind: text('kind').$type<StepKind>().notNull(),
      signal: text('signal'),
      trace: text('trace'),
      output: jsonb('output'),
      error: jsonb('error').$type<StepErrorRecord>(),
    },
    (t) => [primaryKey({ name: `${name}_pkey`, columns: [t.jobId, t.queue, t.name] })],
  );
  // The builders above declare these columns, through the reader's own drizzle-orm.
  return steps as unknown as StepsTable<TName, TSchema>;
}
