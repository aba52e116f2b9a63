import { QueueError } from '../../index.ts';
import { isUndo } from '../../internal.ts';
import type { Project } from './project/open-project.ts';
import { ShownValues } from './shown-values.ts';
import { workflowsOf } from './workflows-of.ts';

const MOST = 50;

/**
 * Why a job cannot go on from a step, where an error says that: it has not recorded it. The message of the
 * error itself names steps that `show` may hide.
 *
 * @throws the error, where it says something else
 */
export async function unknownStep(
  project: Project,
  id: number,
  from: string,
  error: unknown,
): Promise<string> {
  if (!(error instanceof QueueError)) throw error;
  const { db, queue } = project;
  const job = await queue.find(db, id);
  if (job === undefined) throw error;
  const names = (await workflowsOf(project).steps(db, id)).flatMap(({ name }) => (isUndo(name) ? [] : name));
  if (names.includes(from)) throw error;
  const values = new ShownValues(project);
  const list = names.slice(0, MOST).map((name) => `'${values.ofStep(job, 'step', name, name)}'`);
  const known = list.length === 0 ? 'none' : `${list.join(', ')}${names.length > MOST ? ' and more' : ''}`;
  return `Job ${id} has no step '${from}'; it has recorded ${known}`;
}
