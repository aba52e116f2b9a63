import { checkDefinition, type JobDefinition, type OutputInput } from '../../core/job/definition.ts';
import { outputToStore } from '../../core/job/validate.ts';
import type { Executor } from '../../core/sql/executor.ts';
import { faultPoint } from '../../core/sql/fault-point.ts';
import { whileLocked } from '../../core/time/while-locked.ts';
import { findWaitingJob } from './queries/find-waiting-job.ts';
import { finishWaitingJob } from './queries/finish-waiting-job.ts';
import type { TablesOfWorkflows } from './sql/workflow-tables.ts';
import { checkTarget, targetOf } from './target-of.ts';

/** The waiting job that is to end: its definition, and its id or its unique key. */
export type JobToFinish<TJob extends JobDefinition = JobDefinition> =
  | { readonly job: TJob; readonly id: number }
  | {
      readonly job: TJob;
      readonly uniqueKey: string;
      /** @default that of the definition */
      readonly queue?: string | undefined;
    };

/**
 * What became of the job. `finished`: it has ended with the commit of the transaction. The others change
 * nothing. `gone`: there is no such live job. `running`: a worker holds it. `not-waiting`: it has not begun,
 * or waits for its next attempt, or is about to end as cancelled. `locked`: another transaction holds its
 * row.
 */
export type FinishResult = 'finished' | 'gone' | 'running' | 'not-waiting' | 'locked';

/** Ends a job that waits as completed. @throws InvalidOutputError | TypeError before anything is sent */
export async function finish<TJob extends JobDefinition>(
  db: Executor,
  tables: TablesOfWorkflows,
  to: JobToFinish<TJob>,
  output: OutputInput<TJob>,
): Promise<FinishResult> {
  checkTarget('finish', to);
  const { job } = to;
  checkDefinition('finish', job);
  const json = await outputToStore(job, output);
  const { keepResult } = job;
  const isWritten = keepResult !== false && json !== 'null';
  const target = await targetOf(db, tables, to);
  if (target === undefined) return 'gone';
  return await whileLocked(async () => {
    const end = { to: target, output: isWritten ? json : undefined, keepResult };
    if (await finishWaitingJob(db, tables, end)) return 'finished';
    await faultPoint('finish: refused');
    const found = await findWaitingJob(db, tables, target);
    if (found === undefined) return 'gone';
    if (found === 'running') return 'running';
    return found === 'waiting' ? 'locked' : 'not-waiting';
  });
}
