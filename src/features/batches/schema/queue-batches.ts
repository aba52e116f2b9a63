import { sql } from 'drizzle-orm';
import { bigint, index, type pgTable, primaryKey, text, timestamp } from 'drizzle-orm/pg-core';
import type {
  BigintColumn,
  Identity,
  InSchema,
  NotNull,
  TextColumn,
  TextColumnOf,
  TimestampColumn,
  WithDefault,
} from '../../../core/schema/column-types.ts';
import type { DeclareTable } from '../../../core/schema/declare-table.ts';

/** The columns of `queue_batches`. */
export type BatchColumns = {
  id: Identity<NotNull<BigintColumn>>;
  flowId: BigintColumn;
  total: NotNull<BigintColumn>;
  pending: NotNull<BigintColumn>;
  failed: WithDefault<NotNull<BigintColumn>>;
  waiting: TextColumnOf<'end' | 'failure'>;
  cancelReason: TextColumn;
  createdAt: WithDefault<NotNull<TimestampColumn>>;
  recountedAt: TimestampColumn;
  endedAt: TimestampColumn;
};

/** `queue_batches` under any name. */
export type BatchesTable<
  TName extends string = string,
  TSchema extends string | undefined = string | undefined,
> = InSchema<ReturnType<typeof pgTable<TName, BatchColumns>>, TSchema>;

/**
 * `queue_batches`: counted sets of jobs, for whose end others wait. A member has the id in
 * `queue_jobs.batch_id`. Only a fold changes the counts of a batch that has committed. What ends a member
 * adds a tally (`queue_tallies`), so members may end at the same time and none waits for another.
 *
 * - `pending`: members that have not ended, as far as tallies are folded; `failed`: members that were
 *   discarded or cancelled, likewise.
 * - `waiting`: the handler that has enqueued its members waits for their `end`, or only for the first
 *   `failure`; null: not yet.
 * - `cancel_reason`: its members are to end.
 * - `flow_id` is the same in the batches of a flow.
 */
export function defineBatchesTable<TName extends string, TSchema extends string | undefined>(
  table: DeclareTable,
  name: TName,
): BatchesTable<TName, TSchema> {
  const batches = table(
    name,
    {
      id: bigint('id', { mode: 'number' }).notNull().generatedAlwaysAsIdentity(),
      flowId: bigint('flow_id', { mode: 'number' }),
      total: bigint('total', { mode: 'number' }).notNull(),
      pending: bigint('pending', { mode: 'number' }).notNull(),
      failed: bigint('failed', { mode: 'number' }).notNull().default(0),
      createdAt: timestamp('created_at', { withTimezone: true }).notNull().defaultNow(),
      recountedAt: timestamp('recounted_at', { withTimezone: true }),
      endedAt: timestamp('ended_at', { withTimezone: true }),
      waiting: text('waiting').$type<'end' | 'failure'>(),
      cancelReason: text('cancel_reason'),
    },
    (t) => [
      primaryKey({ name: `${name}_pkey`, columns: [t.id] }),
      index(`${name}_flow_idx`).on(t.flowId).where(sql`flow_id is not null`),
    ],
  );
  // The builders above declare these columns, through the reader's own drizzle-orm.
  return batches as unknown as BatchesTable<TName, TSchema>;
}
