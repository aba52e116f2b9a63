import { bigint, type pgTable, primaryKey, text, timestamp } from 'drizzle-orm/pg-core';
import type {
  BigintColumn,
  InSchema,
  NotNull,
  TextColumn,
  TimestampColumn,
} from '../../core/schema/column-types.ts';
import type { DeclareTable } from '../../core/schema/declare-table.ts';

/** The columns of `queue_holds`. */
export type HoldColumns = {
  queue: NotNull<TextColumn>;
  groupKey: NotNull<TextColumn>;
  jobId: NotNull<BigintColumn>;
  until: NotNull<TimestampColumn>;
  workerId: BigintColumn;
};

/** `queue_holds` under any name. */
export type HoldsTable<
  TName extends string = string,
  TSchema extends string | undefined = string | undefined,
> = InSchema<ReturnType<typeof pgTable<TName, HoldColumns>>, TSchema>;

/**
 * `queue_holds`: which jobs keep their slot in their group although no worker holds them any more. Whatever
 * ends the hold inserts the row, so it changes none that others want. Claims remove those whose time has
 * passed.
 *
 * `until`: the next attempt of a job that keeps those behind it waiting; `infinity` for one that was
 * discarded and stops its group.
 *
 * `worker_id`: of a job that its handler has ended by `complete(tx)`, the worker in which this handler still
 * runs. The worker removes the row when the handler has ended; it does not count once the worker is gone.
 */
export function defineHoldsTable<TName extends string, TSchema extends string | undefined>(
  table: DeclareTable,
  name: TName,
): HoldsTable<TName, TSchema> {
  const holds = table(
    name,
    {
      queue: text('queue').notNull(),
      groupKey: text('group_key').notNull(),
      jobId: bigint('job_id', { mode: 'number' }).notNull(),
      until: timestamp('until', { withTimezone: true }).notNull(),
      workerId: bigint('worker_id', { mode: 'number' }),
    },
    (t) => [primaryKey({ name: `${name}_pkey`, columns: [t.queue, t.groupKey, t.jobId] })],
  );
  // The builders above declare these columns, through the reader's own drizzle-orm.
  return holds as unknown as HoldsTable<TName, TSchema>;
}
