import { bigint, integer, type pgTable, primaryKey, text } from 'drizzle-orm/pg-core';
import type {
  BigintColumn,
  Identity,
  InSchema,
  IntegerColumn,
  NotNull,
  TextColumn,
  WithDefault,
} from '../../../core/schema/column-types.ts';
import type { DeclareTable } from '../../../core/schema/declare-table.ts';

/** The columns of `queue_tallies`. */
export type TallyColumns = {
  id: Identity<NotNull<BigintColumn>>;
  batchId: NotNull<BigintColumn>;
  added: WithDefault<NotNull<IntegerColumn>>;
  ended: WithDefault<NotNull<IntegerColumn>>;
  failed: WithDefault<NotNull<IntegerColumn>>;
  cancelReason: TextColumn;
};

/** `queue_tallies` under any name. */
export type TalliesTable<
  TName extends string = string,
  TSchema extends string | undefined = string | undefined,
> = InSchema<ReturnType<typeof pgTable<TName, TallyColumns>>, TSchema>;

/**
 * `queue_tallies`: changes of a batch that are not counted yet: ends, returns, new members, cancel requests.
 * Writers only insert. A fold deletes what it counts, within milliseconds. A redrive of the flow, which holds
 * the batches' locks, takes cancel requests out. A recount deletes the rows of batches that are gone.
 *
 * - `ended` is negative for members that were put back, and `added` counts new ones. A row without counts
 *   lets a fold look whether the batch has ended.
 * - `cancel_reason`: the members that are left are to end.
 */
export function defineTalliesTable<TName extends string, TSchema extends string | undefined>(
  table: DeclareTable,
  name: TName,
): TalliesTable<TName, TSchema> {
  const tallies = table(
    name,
    {
      id: bigint('id', { mode: 'number' }).notNull().generatedAlwaysAsIdentity(),
      batchId: bigint('batch_id', { mode: 'number' }).notNull(),
      added: integer('added').notNull().default(0),
      ended: integer('ended').notNull().default(0),
      failed: integer('failed').notNull().default(0),
      cancelReason: text('cancel_reason'),
    },
    (t) => [primaryKey({ name: `${name}_pkey`, columns: [t.batchId, t.id] })],
  );
  // The builders above declare these columns, through the reader's own drizzle-orm.
  return tallies as unknown as TalliesTable<TName, TSchema>;
}
