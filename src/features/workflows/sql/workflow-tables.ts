import type { QueueTables } from '../../../core/schema/create-queue-tables.ts';
import type { WorkflowTables } from '../schema/create-workflow-tables.ts';

/** The entry whose export makes drizzle-kit create the tables of workflows. */
export const WORKFLOWS_ENTRY = 'drizzle-queue/schema/workflows';

export type TablesOfWorkflows = QueueTables & WorkflowTables;
