/**
 * The tables of workflows, for the app's own Drizzle schema: `export * from
 * 'drizzle-queue/schema/workflows'`. This entry loads nothing but drizzle-orm.
 */
import { createWorkflowTables, type WorkflowTables } from './create-workflow-tables.ts';

const tables: WorkflowTables<'queue_', undefined> = createWorkflowTables();

/** `queue_steps`: what jobs have done in their middle, and what they wait for. */
export const queueSteps: WorkflowTables<'queue_', undefined>['queueSteps'] = tables.queueSteps;
/** `queue_mailboxes`: the signals that were sent to jobs. */
export const queueMailboxes: WorkflowTables<'queue_', undefined>['queueMailboxes'] = tables.queueMailboxes;

export { createWorkflowTables, type WorkflowTables } from './create-workflow-tables.ts';
export type { MailboxColumns, MailboxesTable, SentSignal } from './queue-mailboxes.ts';
export type { StepColumns, StepErrorRecord, StepKind, StepsTable } from './queue-steps.ts';
