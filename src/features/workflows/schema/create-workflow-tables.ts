import { placeOf, type TablePlace } from '../../../core/schema/table-place.ts';
import { type BatchesTable, defineBatchesTable } from '../../batches/schema/queue-batches.ts';
import { defineTalliesTable, type TalliesTable } from '../../batches/schema/queue-tallies.ts';
import { defineWaitsTable, type WaitsTable } from '../../batches/schema/queue-waits.ts';
import { defineMailboxesTable, type MailboxesTable } from './queue-mailboxes.ts';
import { defineStepsTable, type StepsTable } from './queue-steps.ts';

/** The tables of workflows, whatever their names. */
export interface WorkflowTables<
  TPrefix extends string = string,
  TSchema extends string | undefined = string | undefined,
> {
  queueSteps: StepsTable<`${TPrefix}steps`, TSchema>;
  queueMailboxes: MailboxesTable<`${TPrefix}mailboxes`, TSchema>;
  queueBatches: BatchesTable<`${TPrefix}batches`, TSchema>;
  queueWaits: WaitsTable<`${TPrefix}waits`, TSchema>;
  queueTallies: TalliesTable<`${TPrefix}tallies`, TSchema>;
}

/**
 * The tables of workflows under other names, to go with those of `createQueueTables`. Destructure them into
 * top-level exports: drizzle-kit does not look inside objects.
 *
 * ```ts
 * export const { queueSteps, queueMailboxes, queueBatches, queueWaits, queueTallies } =
 *   createWorkflowTables({ prefix: 'mail_' });
 * ```
 *
 * @throws TypeError when the prefix is not a plain lower-case name, or the schema is none
 */
export function createWorkflowTables<
  const TPrefix extends string = 'queue_',
  const TSchema extends string | undefined = undefined,
>(options: TablePlace<TPrefix, TSchema> = {}): WorkflowTables<TPrefix, TSchema> {
  const { prefix, table } = placeOf('createWorkflowTables', options);
  return {
    queueSteps: defineStepsTable<`${TPrefix}steps`, TSchema>(table, `${prefix}steps`),
    queueMailboxes: defineMailboxesTable<`${TPrefix}mailboxes`, TSchema>(table, `${prefix}mailboxes`),
    queueBatches: defineBatchesTable<`${TPrefix}batches`, TSchema>(table, `${prefix}batches`),
    queueWaits: defineWaitsTable<`${TPrefix}waits`, TSchema>(table, `${prefix}waits`),
    queueTallies: defineTalliesTable<`${TPrefix}tallies`, TSchema>(table, `${prefix}tallies`),
  };
}
