import { is } from 'drizzle-orm';
import { PgTable } from 'drizzle-orm/pg-core';
import { checkObject } from '../../core/job/limits.ts';
import { shown } from '../../core/job/shown.ts';
import type { QueueOfWorkflows } from '../../core/queue/queue-workflows.ts';
import type { WorkflowTables } from './schema/create-workflow-tables.ts';
import { Workflows } from './workflows.ts';

/** Makes the workflows of a queue: what {@link workflowsIn} returns. */
export type MakeWorkflows = (queue: QueueOfWorkflows) => Workflows;

/**
 * Gives the handlers of a queue `step`: a job survives its own middle, and waits without holding anything. A
 * queue without it loads none of its code.
 *
 * ```ts
 * import * as workflows from 'drizzle-queue/schema/workflows';
 *
 * export const queue = createQueue({ workflows: workflowsIn(workflows) });
 * const { handle } = handlersFor<typeof db, typeof queue>();
 * ```
 *
 * @param tables those that the app's schema exports, from `drizzle-queue/schema/workflows` or
 * `createWorkflowTables`
 * @throws TypeError naming the table that is wrong
 */
export function workflowsIn(tables: WorkflowTables): MakeWorkflows {
  checkObject('workflowsIn: tables', tables);
  const { queueSteps, queueMailboxes, queueBatches, queueWaits, queueTallies } = tables;
  const own = { queueSteps, queueMailboxes, queueBatches, queueWaits, queueTallies };
  for (const [name, table] of Object.entries(own)) {
    if (!is(table, PgTable)) {
      throw new TypeError(
        `workflowsIn takes the tables of 'drizzle-queue/schema/workflows'; its ${name} is ${shown(table)}`,
      );
    }
  }
  return (queue) => new Workflows(queue, own);
}
