import { bigint, index, type pgTable, primaryKey, text } from 'drizzle-orm/pg-core';
import type {
  BigintColumn,
  InSchema,
  NotNull,
  TextColumn,
  TextColumnOf,
} from '../../../core/schema/column-types.ts';
import type { DeclareTable } from '../../../core/schema/declare-table.ts';

/**
 * What a batch is for a job that waits for it. `parent`: its handler has enqueued the members, and waits when
 * it says so; if it is cancelled, so are they. `detached`: the same, but they go on. `run`: it runs once all
 * have ended. `cancel`: it ends as cancelled at the first failure. `forked`: the job of which it was forked
 * has waited for it, so it may ask how the members have ended; it waits for nothing.
 */
export type WaitPolicy = 'parent' | 'detached' | 'run' | 'cancel' | 'forked';

/** The columns of `queue_waits`. */
export type WaitColumns = {
  batchId: NotNull<BigintColumn>;
  jobId: NotNull<BigintColumn>;
  queue: NotNull<TextColumn>;
  policy: NotNull<TextColumnOf<WaitPolicy>>;
};

/** `queue_waits` under any name. */
export type WaitsTable<
  TName extends string = string,
  TSchema extends string | undefined = string | undefined,
> = InSchema<ReturnType<typeof pgTable<TName, WaitColumns>>, TSchema>;

/**
 * `queue_waits`: which jobs the end of a batch makes due. A row is written in the transaction that makes the
 * batch, and never changed, so a fold always knows all of them. Only rows of `forked` come later, when the
 * batch has ended. A fold ignores these.
 */
export function defineWaitsTable<TName extends string, TSchema extends string | undefined>(
  table: DeclareTable,
  name: TName,
): WaitsTable<TName, TSchema> {
  const waits = table(
    name,
    {
      batchId: bigint('batch_id', { mode: 'number' }).notNull(),
      jobId: bigint('job_id', { mode: 'number' }).notNull(),
      queue: text('queue').notNull(),
      policy: text('policy').$type<WaitPolicy>().notNull(),
    },
    (t) => [
      primaryKey({ name: `${name}_pkey`, columns: [t.batchId, t.jobId, t.queue] }),
      // What a job waits for, and the members to cancel with it.
      index(`${name}_job_idx`).on(t.jobId),
    ],
  );
  // The builders above declare these columns, through the reader's own drizzle-orm.
  return waits as unknown as WaitsTable<TName, TSchema>;
}
