import type { Workflows } from '../../index.ts';
import { Failure } from './failure.ts';
import type { Project } from './project/open-project.ts';

/** The workflows of the queue. @throws Failure where it has none */
export function workflowsOf({ queue }: Pick<Project, 'queue'>): Workflows {
  // createQueue has put it there, or nothing.
  const workflows = queue.workflows as Workflows | undefined;
  if (workflows !== undefined) return workflows;
  throw new Failure(
    'This queue has no workflows: createQueue({ workflows: workflowsIn(workflowTables) }), with the tables ' +
      "of 'drizzle-queue/schema/workflows'",
  );
}
