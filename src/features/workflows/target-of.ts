import { checkDefinition, type JobDefinition } from '../../core/job/definition.ts';
import {
  checkId,
  checkObject,
  checkText,
  MAX_NAME_BYTES,
  MAX_UNIQUE_KEY_BYTES,
} from '../../core/job/limits.ts';
import type { Executor } from '../../core/sql/executor.ts';
import { findQueue } from './queries/find-queue.ts';
import type { LiveTarget } from './sql/live-target.ts';
import type { TablesOfWorkflows } from './sql/workflow-tables.ts';

/** The live job that a signal is for: by its id, or by its definition and unique key. */
export type SignalTo =
  | {
      readonly id: number;
      /** Only if it is of this kind. @default of any */
      readonly job?: JobDefinition | undefined;
    }
  | {
      readonly job: JobDefinition;
      readonly uniqueKey: string;
      /** @default that of the definition */
      readonly queue?: string | undefined;
    };

/** For callers without TypeScript. @throws TypeError */
export function checkTarget(caller: string, to: SignalTo): void {
  checkObject(`${caller}: to`, to);
  if (to.job !== undefined) checkDefinition(caller, to.job);
  if ('id' in to) checkId(caller, to.id);
  else {
    checkText(`${caller}: uniqueKey`, to.uniqueKey, MAX_UNIQUE_KEY_BYTES);
    if (to.queue !== undefined) checkText(`${caller}: queue`, to.queue, MAX_NAME_BYTES);
  }
}

/** The same with the queue, which is in every key; `undefined` where there is no such live job. */
export async function targetOf(
  db: Executor,
  tables: TablesOfWorkflows,
  to: SignalTo,
): Promise<LiveTarget | undefined> {
  if ('id' in to) {
    const queue = await findQueue(db, tables, to.id);
    return queue === undefined ? undefined : { queue, id: to.id, kind: to.job?.kind };
  }
  const { job, uniqueKey, queue = job.queue } = to;
  return { queue, kind: job.kind, uniqueKey };
}
