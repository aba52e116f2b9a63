import type { Executor } from '../../core/sql/executor.ts';
import { QueueError } from '../../errors.ts';
import { findStepNames } from './queries/find-step-names.ts';
import type { TablesOfWorkflows } from './sql/workflow-tables.ts';

const MAX_NAMED = 50;

/** Why a job cannot go on from a step that it has not recorded. */
export async function unknownStep(
  db: Executor,
  tables: TablesOfWorkflows,
  caller: string,
  { queue, id, from }: { readonly queue: string; readonly id: number; readonly from: string },
): Promise<QueueError> {
  const names = await findStepNames(db, tables, { queue, id }, MAX_NAMED + 1);
  const list = names.slice(0, MAX_NAMED).map((name) => `'${name}'`);
  const known =
    names.length === 0
      ? 'it has recorded none yet'
      : `it has ${list.join(', ')}${names.length > MAX_NAMED ? ' and more' : ''}`;
  return new QueueError(`${caller}: job ${id} has no step '${from}': ${known}`);
}
