import { type Database, QueueError, type RedriveFromResult, type Workflows } from '../../index.ts';
import { isUndo, type ShownJob } from '../../internal.ts';
import type { Deed } from './deed.ts';
import { type Fields, stepIn } from './form-fields.ts';
import { ownJob } from './own-job.ts';
import type { NoticeCode } from './parts/notice.tsx';
import { revealed, type Visit, workflowsOf } from './visit.ts';

const NOTICES: Readonly<Record<RedriveFromResult, NoticeCode>> = {
  redriven: 'redriven',
  running: 'running',
  completed: 'finished',
  duplicate: 'duplicates',
  locked: 'locked',
  gone: 'not-found',
};

/** Does a step of a job again, and all that began after it: in the same job, or in a new one. */
export async function fromStep(
  visit: Visit,
  { id: text = '', step = '' }: Fields,
  what: 'redrive' | 'fork',
): Promise<Deed | undefined> {
  const [job, from, workflows] = [await ownJob(visit, text), stepIn(step), workflowsOf(visit)];
  if (job === undefined || from === undefined || workflows === undefined) return undefined;
  const { db } = visit.settings;
  const ids = [job.id];
  const target = { step: revealed(visit, job, 'step', { text: from, step: from }) ?? 'hidden' };
  try {
    if (what === 'redrive') {
      const became = await workflows.redrive(db, job.id, { from });
      const done = became === 'redriven';
      return {
        notice: NOTICES[became],
        ...(done && { count: 1 }),
        ids,
        target,
        outcome: done ? '1 redriven' : became,
      };
    }
    if (job.payloadText === null) return { notice: 'no-payload', ids, target, outcome: 'payload not kept' };
    const { id, steps: count } = await workflows.fork(db, job.id, { from });
    return { notice: 'forked', count, ids, target, outcome: `forked as ${id}`, to: `/jobs/${id}` };
  } catch (error) {
    if (!(error instanceof QueueError) || (await hasStep(workflows, db, job, from))) throw error;
    return { notice: 'no-step', ids, target, outcome: 'step not found' };
  }
}

/** Whether the job can go on from the step, which it has forgotten when another user has redriven it. */
async function hasStep(
  workflows: Workflows,
  db: Database,
  { id, queue }: ShownJob,
  name: string,
): Promise<boolean> {
  return !isUndo(name) && (await workflows.shown(db, { id, queue, name, cut: 0, limit: 1 })).count > 0;
}
