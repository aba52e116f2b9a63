import { checkOptions, namesOf } from '../../core/job/known-options.ts';
import { checkObject } from '../../core/job/limits.ts';
import { shown } from '../../core/job/shown.ts';
import type { QueueOfWorkflows } from '../../core/queue/queue-workflows.ts';
import { checkSameSet } from '../../core/schema/same-set.ts';
import { checkTables } from '../../core/sql/feature-tables.ts';
import type { StepObserver } from './job/step-observer.ts';
import type { WorkflowTables } from './schema/create-workflow-tables.ts';
import { WORKFLOWS_ENTRY } from './sql/workflow-tables.ts';
import { type TokenSecret, Tokens } from './tokens/tokens.ts';
import { Workflows } from './workflows.ts';

/** Makes the workflows of a queue: what {@link workflowsIn} returns. */
export type MakeWorkflows = (queue: QueueOfWorkflows) => Workflows;

/** Options of {@link workflowsIn}. */
export interface WorkflowOptions {
  /** Sees each step, such as `otelSteps()` of `drizzle-queue/opentelemetry`. @default none */
  readonly observe?: StepObserver | undefined;
  /**
   * What `step.token` signs with, each of at least 32 bytes: the first signs, and all of them verify. To
   * change it, put the new one in front, and keep the old one for as long as its tokens may be redeemed. The
   * same in all processes. @default none: `step.token` and `queue.workflows.redeem` throw
   */
  readonly secrets?: readonly TokenSecret[] | undefined;
}

const OPTIONS = namesOf<WorkflowOptions>({ observe: true, secrets: true });

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
 * @throws TypeError | RangeError naming the table, the option or the place of the secret that is wrong;
 * createQueue throws a TypeError where the tables are not of its own set
 */
export function workflowsIn(tables: WorkflowTables, options: WorkflowOptions = {}): MakeWorkflows {
  checkObject('workflowsIn: tables', tables);
  const { queueSteps, queueMailboxes, queueBatches, queueWaits, queueTallies } = tables;
  const own = { queueSteps, queueMailboxes, queueBatches, queueWaits, queueTallies };
  checkTables('workflowsIn', WORKFLOWS_ENTRY, own);
  const { observe, secrets } = checkOptions('workflowsIn: options', options, OPTIONS);
  if (observe !== undefined && (typeof observe?.begin !== 'function' || typeof observe.resume !== 'function'))
    throw new TypeError(`workflowsIn: observe must have begin() and resume(), got ${shown(observe)}`);
  const tokens = secrets === undefined ? undefined : new Tokens(secrets);
  return (queue) => {
    checkSameSet('workflowsIn', queue.tables.queueJobs, own, 'createWorkflowTables');
    return new Workflows(queue, own, observe, tokens);
  };
}
