import { bigint, type pgTable, primaryKey, text, timestamp } from 'drizzle-orm/pg-core';
import type { BigintColumn, InSchema, NotNull, TextColumn, TimestampColumn } from '../column-types.ts';
import type { DeclareTable } from '../declare-table.ts';

/** The columns of `queue_holds`: see {@link defineHoldsTable}. */
export type HoldColumns = {
  queue: NotNull<TextColumn>;
  groupKey: NotNull<TextColumn>;
  jobId: NotNull<BigintColumn>;
  until: TimestampColumn;
};

/** `queue_holds` under any name. */
export type HoldsTable<
  TName extends string = string,
  TSchema extends string | undefined = string | undefined,
> = InSchema<ReturnType<typeof pgTable<TName, HoldColumns>>, TSchema>;

/**
 * `queue_holds`: which jobs of a group may be held. It only tells where to look: a row counts while a living
 * worker holds the job, by the row of the job itself, or until `until`. So a worker that dies frees its slots
 * by dying, and a row that is left over counts for nothing. Claims write the rows, and remove those that no
 * longer count.
 *
 * `until`: where a group's jobs run one after the other, a job that waits for its next attempt keeps those
 * behind it waiting; `infinity` for one that was discarded and stops its group.
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
      until: timestamp('until', { withTimezone: true }),
    },
    (t) => [primaryKey({ name: `${name}_pkey`, columns: [t.queue, t.groupKey, t.jobId] })],
  );
  // The builders above declare these columns, through the reader's own drizzle-orm.
  return holds as unknown as HoldsTable<TName, TSchema>;
}
