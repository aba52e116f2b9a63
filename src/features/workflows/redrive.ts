import { checkId, checkObject, checkText } from '../../core/job/limits.ts';
import { redriveJobs } from '../../core/queries/operate/redrive-jobs.ts';
import { runJobNow } from '../../core/queries/operate/run-job-now.ts';
import type { Executor } from '../../core/sql/executor.ts';
import { faultPoint } from '../../core/sql/fault-point.ts';
import { groupsIn } from '../../core/sql/statement-context.ts';
import { whileLocked } from '../../core/time/while-locked.ts';
import { MAX_MADE_NAME_BYTES } from './job/step-names.ts';
import { findJobWithStep } from './queries/find-job-with-step.ts';
import { forgetSteps } from './queries/forget-steps.ts';
import { lockLiveJob } from './queries/lock-live-job.ts';
import { lockMailboxes } from './queries/lock-mailboxes.ts';
import { unparkJobs } from './queries/unpark-jobs.ts';
import type { TablesOfWorkflows } from './sql/workflow-tables.ts';
import { unknownStep } from './unknown-step.ts';

/**
 * What became of the job. `redriven`: it is due, and does the step again. The others change nothing.
 * `running`: a worker holds it, or it is about to end as cancelled. `completed`: it has ended well, and can
 * only be forked. `duplicate`: a live job has its unique key. `locked`: another transaction holds its row, or
 * has sent it a signal and is open. `gone`: there is no such job.
 */
export type RedriveFromResult = 'redriven' | 'running' | 'completed' | 'duplicate' | 'locked' | 'gone';

/** @throws TypeError before anything is sent */
export function checkRedrive(id: number, options: { readonly from: string }): void {
  checkId('redrive', id);
  checkText('redrive: from', checkObject('redrive: options', options).from, MAX_MADE_NAME_BYTES);
}

/** Lets a job go on from a step that it has recorded. To be called in a transaction. */
export async function redriveFrom(
  tx: Executor,
  tables: TablesOfWorkflows,
  { id, from }: { readonly id: number; readonly from: string },
  channel: string | undefined,
): Promise<RedriveFromResult> {
  return await whileLocked(async () => {
    const found = await findJobWithStep(tx, tables, id, from);
    if (found === undefined) return 'gone';
    const { queue, state } = found;
    if (state === 'completed') return state;
    if (!found.hasStep) throw await unknownStep(tx, tables, 'redrive', { queue, id, from });
    await faultPoint('redrive: found');
    if (!(await lockMailboxes(tx, tables, { queue, id }))) return 'locked';
    if (state === 'live') {
      const locked = await lockLiveJob(tx, tables, { queue, id });
      // It has just ended, or its row is locked.
      if (locked === undefined) return 'locked';
      if (locked === 'held') return 'running';
      // An attempt may have received something meanwhile, out of a mailbox that is not locked.
      if (!(await lockMailboxes(tx, tables, { queue, id }))) return 'locked';
    } else {
      const wakeUp = channel === undefined ? undefined : { channel, queues: [], othersNotify: false };
      const { redriven, duplicates } = await redriveJobs(tx, tables, { id, queue, state }, wakeUp);
      // Another redrive has put it back, or is about to.
      if (redriven === 0) return duplicates > 0 ? 'duplicate' : 'locked';
    }
    await forgetSteps(tx, tables, { queue, id, from });
    if (state === 'live') {
      await unparkJobs(tx, tables, { queue, ids: [id], onlyWaiting: false, channel });
      // One that keeps its place is not claimed before the time of its next attempt.
      if (groupsIn(tables, queue) !== undefined) await runJobNow(tx, tables, { queue, id });
    }
    return 'redriven';
  });
}
