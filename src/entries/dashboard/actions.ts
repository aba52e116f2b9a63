import { QueueError } from '../../index.ts';
import { databaseTime, type ManyAction } from '../../internal.ts';
import type { DashboardAction } from './access.ts';
import type { Deed } from './deed.ts';
import { type Fields, nameIn, numberOf, timeOf } from './form-fields.ts';
import { fromStep } from './from-step.ts';
import { limitText, RefusedLimitError, setLimit } from './limit-form.ts';
import { chosenOf, doWithChosen, reasonOf } from './many-jobs.ts';
import { jobId, ownJob } from './own-job.ts';
import type { NoticeCode } from './parts/notice.tsx';
import { redriveCause } from './redrive-cause.ts';
import { audited, hasQueue, limitsOf, may, schedulesOf, type Visit, workflowsOf } from './visit.ts';

interface Act {
  /** The right that it needs. */
  readonly action: DashboardAction;
  /** `undefined`: what it names is not there, or not theirs. */
  act(visit: Visit, fields: Fields): Promise<Deed | undefined>;
}

const ACTS: Readonly<Record<string, Act>> = {
  cancel: { action: 'cancel', act: (visit, fields) => cancel(visit, fields, false) },
  force: { action: 'force', act: (visit, fields) => cancel(visit, fields, true) },
  redrive: { action: 'redrive', act: redrive },
  'redrive-from': { action: 'redrive', act: (visit, fields) => fromStep(visit, fields, 'redrive') },
  fork: { action: 'fork', act: (visit, fields) => fromStep(visit, fields, 'fork') },
  'cancel-flow': { action: 'cancel', act: (visit, fields) => withFlow(visit, fields, 'cancel') },
  'redrive-flow': { action: 'redrive', act: (visit, fields) => withFlow(visit, fields, 'redrive') },
  'redrive-cause': { action: 'redrive', act: redriveCause },
  'run-now': { action: 'runNow', act: runNow },
  'cancel-many': { action: 'cancel', act: (visit, fields) => many(visit, fields, 'cancel') },
  'redrive-many': { action: 'redrive', act: (visit, fields) => many(visit, fields, 'redrive') },
  'run-now-many': { action: 'runNow', act: (visit, fields) => many(visit, fields, 'run-now') },
  pause: { action: 'pause', act: (visit, fields) => pause(visit, fields, true) },
  resume: { action: 'resume', act: (visit, fields) => pause(visit, fields, false) },
  'run-schedule': { action: 'schedule', act: (visit, fields) => schedule(visit, fields, 'run') },
  'pause-schedule': { action: 'schedule', act: (visit, fields) => schedule(visit, fields, 'pause') },
  'resume-schedule': { action: 'schedule', act: (visit, fields) => schedule(visit, fields, 'resume') },
  limit: { action: 'limit', act: (visit, fields) => limit(visit, fields, false) },
  'remove-limit': { action: 'limit', act: (visit, fields) => limit(visit, fields, true) },
  unblock: { action: 'unblock', act: unblock },
};

/** What became of an action that a form asked for. */
export type Acted =
  | ({ readonly done: true } & Pick<Deed, 'notice' | 'count' | 'left' | 'goesOn' | 'to'>)
  | { readonly done: false; readonly why: 'refused'; readonly message: string }
  | { readonly done: false; readonly why: 'unknown' | 'forbidden' | 'not-found' };

/** Does what a form asks for, if they may, and tells `onAction`. */
export async function act(visit: Visit, name: string, fields: Fields): Promise<Acted> {
  const known = Object.hasOwn(ACTS, name) ? ACTS[name] : undefined;
  if (known === undefined) return { done: false, why: 'unknown' };
  if (!may(visit, known.action)) return { done: false, why: 'forbidden' };
  let deed: Deed | undefined;
  try {
    deed = await known.act(visit, fields);
  } catch (error) {
    // The user's input cannot be set; the message says why.
    if (!(error instanceof RefusedLimitError)) throw error;
    return { done: false, why: 'refused', message: error.message };
  } finally {
    visit.looks.forget();
    visit.searches.forget();
  }
  if (deed === undefined) return { done: false, why: 'not-found' };
  const { ids = [], target = {}, outcome, ...said } = deed;
  const who = { actor: visit.granted.actor, name: visit.settings.name };
  await visit.settings.onAction({ ...who, action: known.action, target, ids, outcome, at: new Date() });
  return { done: true, ...said };
}

async function cancel(visit: Visit, { id: text = '' }: Fields, force: boolean): Promise<Deed | undefined> {
  const id = (await ownJob(visit, text))?.id;
  if (id === undefined) return undefined;
  const { db, queue } = visit.settings;
  const result = await queue.cancel(db, id, { reason: reasonOf(visit), force });
  const outcome =
    result.cancelled === false ? result.reason : result.cancelled === true ? 'cancelled' : 'requested';
  return { notice: outcome, ids: [id], outcome };
}

async function redrive(visit: Visit, { id: text = '' }: Fields): Promise<Deed | undefined> {
  const id = (await ownJob(visit, text))?.id;
  if (id === undefined) return undefined;
  const { db, queue } = visit.settings;
  const { redriven, duplicates } = await queue.redrive(db, id);
  const notice = redriven > 0 ? 'redriven' : duplicates > 0 ? 'duplicates' : 'not-discarded';
  return { notice, count: redriven, ids: [id], outcome: `${redriven} redriven` };
}

/** With all jobs of a flow, so only for users who may see all jobs. */
async function withFlow(
  visit: Visit,
  { id: text = '' }: Fields,
  what: 'cancel' | 'redrive',
): Promise<Deed | undefined> {
  const [id, workflows] = [jobId(text), workflowsOf(visit)];
  const { db } = visit.settings;
  if (id === undefined || workflows === undefined || !visit.granted.whole) return undefined;
  if ((await workflows.flow(db, id)) === undefined) return undefined;
  const target = { flow: String(id) };
  if (what === 'cancel') {
    const open = await workflows.cancelFlow(db, id, reasonOf(visit));
    return {
      notice: open ? 'flow-cancelled' : 'unchanged',
      target,
      outcome: open ? 'cancelled' : 'unchanged',
    };
  }
  const count = await workflows.redriveFlow(db, id);
  return { notice: count > 0 ? 'flow-redriven' : 'none', count, target, outcome: `${count} redriven` };
}

const DONE: Readonly<Record<ManyAction, NoticeCode>> = {
  cancel: 'cancelled-many',
  redrive: 'redriven',
  'run-now': 'due-now',
};

/** With many jobs at once, as far as one request goes. */
async function many(visit: Visit, fields: Fields, action: ManyAction): Promise<Deed | undefined> {
  const { of = '', q = '', ids = '' } = fields;
  const selected = ids.split(' ').filter((id) => id !== '');
  const chosen = chosenOf(visit, { action, of, q, ids: selected });
  const [until, after = 0, tried = 0, done = 0, total] = ['until', 'after', 'tried', 'done', 'total'].map(
    (name) => numberOf(fields[name]),
  );
  if (chosen === undefined || until === undefined) return undefined;
  const { db, queue } = visit.settings;
  const asOf = numberOf(fields.asof) ?? (await databaseTime(db, queue.tables)).getTime() + 1;
  const bounds = { until, asOf: timeOf(asOf) };
  const stretch = await doWithChosen(visit, chosen, { after, tried, done }, bounds);
  const sum = stretch.done - done;
  const deed = {
    count: stretch.done,
    left: stretch.tried - stretch.done,
    ids: stretch.ids,
    target: of === 'all' ? { filter: q } : {},
    outcome: `${sum} ${action === 'cancel' ? 'cancelled' : action === 'redrive' ? 'redriven' : 'due now'}`,
  };
  const goesOn = { path: `${action}-many`, progress: stretch, total, kept: { asof: String(asOf) } };
  if (stretch.end === 'more') return { ...deed, notice: DONE[action], goesOn };
  return { ...deed, notice: stretch.end === 'slow' ? 'slow' : DONE[action] };
}

async function runNow(visit: Visit, { id: text = '' }: Fields): Promise<Deed | undefined> {
  const id = (await ownJob(visit, text))?.id;
  if (id === undefined) return undefined;
  const { db, queue } = visit.settings;
  const answer = await queue.runNow(db, id);
  return answer.due
    ? { notice: 'due-now', count: 1, ids: [id], outcome: 'due now' }
    : { notice: answer.reason, ids: [id], outcome: answer.reason };
}

async function pause(visit: Visit, fields: Fields, on: boolean): Promise<Deed | undefined> {
  const name = nameIn(fields.queue);
  if (name === undefined || !hasQueue(visit, name)) return undefined;
  const { db, queue } = visit.settings;
  const changed = on ? await queue.pause(db, name) : await queue.resume(db, name);
  const outcome = !changed ? 'unchanged' : on ? 'paused' : 'resumed';
  return { notice: outcome, target: { queue: name }, outcome };
}

async function schedule(
  visit: Visit,
  fields: Fields,
  what: 'run' | 'pause' | 'resume',
): Promise<Deed | undefined> {
  const name = nameIn(fields.name);
  const schedules = schedulesOf(visit);
  const { db } = visit.settings;
  const found = name === undefined ? undefined : await schedules?.find(db, name);
  if (schedules === undefined || found === undefined || !hasQueue(visit, found.queue)) return undefined;
  const target = { schedule: audited(visit, undefined, 'schedule', found.name) };
  try {
    if (what === 'run') {
      const { id, duplicate } = await schedules.runNow(db, found.name);
      const notice = duplicate ? 'ran-duplicate' : 'ran';
      return { notice, ids: [id], target, outcome: duplicate ? 'duplicate' : 'run' };
    }
    const changed = await schedules[what](db, found.name);
    const outcome = !changed ? 'unchanged' : what === 'pause' ? 'paused' : 'resumed';
    return { notice: outcome, target, outcome };
  } catch (error) {
    // The schedule was removed meanwhile.
    if (error instanceof QueueError && (await schedules.find(db, found.name)) === undefined)
      return { notice: 'no-schedule', target, outcome: 'schedule not found' };
    throw error;
  }
}

async function unblock(visit: Visit, fields: Fields): Promise<Deed | undefined> {
  const limits = limitsOf(visit);
  const [queue, group] = [nameIn(fields.queue), nameIn(fields.group)];
  if (limits === undefined || queue === undefined || group === undefined) return undefined;
  if (!limits.has(queue) || !hasQueue(visit, queue)) return undefined;
  const changed = await limits.unblock(visit.settings.db, { queue, group });
  return {
    notice: changed ? 'unblocked' : 'unchanged',
    target: { queue, group: audited(visit, undefined, 'group', group) },
    outcome: changed ? 'unblocked' : 'unchanged',
  };
}

async function limit(visit: Visit, fields: Fields, remove: boolean): Promise<Deed | undefined> {
  const { queue = '', kind = '', group = '' } = fields;
  const limits = limitsOf(visit);
  if (limits === undefined || !limits.has(queue) || !hasQueue(visit, queue)) return undefined;
  await setLimit(visit, limits, fields, remove);
  const target = {
    queue,
    ...(kind !== '' && { kind }),
    ...(group !== '' && { group: audited(visit, undefined, 'group', group) }),
  };
  const notice = remove ? 'unlimited' : 'limited';
  return { notice, target, outcome: remove ? 'removed' : limitText(fields) };
}
