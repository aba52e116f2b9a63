import { QueueError } from '../errors.ts';
import { findOfCause } from '../queries/find-of-cause.ts';
import { showJob } from '../queries/show-job.ts';
import type { DashboardAction } from './access.ts';
import { ERRORS_BOUND, REDRIVE_LIMIT } from './pages/errors.tsx';
import type { NoticeCode } from './parts/notice.tsx';
import { within } from './shared-looks.ts';
import { hasQueue, limitsOf, may, schedulesOf, type Visit } from './visit.ts';

/** What an action came to. */
interface Deed {
  readonly notice: NoticeCode;
  readonly count?: number;
  readonly ids?: readonly number[];
  readonly target?: Readonly<Record<string, string>>;
  readonly outcome: string;
}

/** What a form sent. */
export type Fields = Readonly<Record<string, string>>;

interface Act {
  /** The right that it needs. */
  readonly action: DashboardAction;
  /** `undefined`: what it names is not there, or not theirs. */
  act(visit: Visit, fields: Fields): Promise<Deed | undefined>;
}

const REDRIVE_KIND_LIMIT = 1_000;
const FIND_MS = 5_000;

const ACTS: Readonly<Record<string, Act>> = {
  cancel: { action: 'cancel', act: (visit, fields) => cancel(visit, fields, false) },
  force: { action: 'force', act: (visit, fields) => cancel(visit, fields, true) },
  redrive: { action: 'redrive', act: redrive },
  'redrive-cause': { action: 'redrive', act: redriveCause },
  'redrive-kind': { action: 'redrive', act: redriveKind },
  pause: { action: 'pause', act: (visit, fields) => pause(visit, fields, true) },
  resume: { action: 'resume', act: (visit, fields) => pause(visit, fields, false) },
  'run-schedule': { action: 'schedule', act: (visit, fields) => schedule(visit, fields, 'run') },
  'pause-schedule': { action: 'schedule', act: (visit, fields) => schedule(visit, fields, 'pause') },
  'resume-schedule': { action: 'schedule', act: (visit, fields) => schedule(visit, fields, 'resume') },
  unblock: { action: 'unblock', act: unblock },
};

/** What became of an action that a form asked for. */
export type Acted =
  | { readonly done: true; readonly notice: NoticeCode; readonly count: number | undefined }
  | { readonly done: false; readonly why: 'unknown' | 'forbidden' | 'not-found' };

/** Does what a form asks for, if they may, and tells `onAction`. */
export async function act(visit: Visit, name: string, fields: Fields): Promise<Acted> {
  const known = Object.hasOwn(ACTS, name) ? ACTS[name] : undefined;
  if (known === undefined) return { done: false, why: 'unknown' };
  if (!may(visit, known.action)) return { done: false, why: 'forbidden' };
  const deed = await known.act(visit, fields);
  visit.looks.forget();
  if (deed === undefined) return { done: false, why: 'not-found' };
  const { notice, count, ids = [], target = {}, outcome } = deed;
  const { actor } = visit.granted;
  await visit.settings.onAction({ actor, action: known.action, target, ids, outcome, at: new Date() });
  return { done: true, notice, count };
}

async function cancel(visit: Visit, { id: text = '' }: Fields, force: boolean): Promise<Deed | undefined> {
  const id = await ownJob(visit, text);
  if (id === undefined) return undefined;
  const { db, queue } = visit.settings;
  const { actor } = visit.granted;
  const reason =
    actor === undefined ? 'cancelled in the dashboard' : `cancelled in the dashboard by ${actor}`;
  const result = await queue.cancel(db, id, { reason, force });
  const outcome = result.cancelled ? 'cancelled' : result.reason;
  return { notice: outcome, ids: [id], outcome };
}

async function redrive(visit: Visit, { id: text = '' }: Fields): Promise<Deed | undefined> {
  const id = await ownJob(visit, text);
  if (id === undefined) return undefined;
  const { db, queue } = visit.settings;
  const { redriven, duplicates } = await queue.redrive(db, id);
  const notice = redriven > 0 ? 'redriven' : duplicates > 0 ? 'duplicates' : 'none';
  return { notice, count: redriven, ids: [id], outcome: `${redriven} redriven` };
}

/** One by one, by id: each is put back once, whoever else does the same. */
async function redriveCause(visit: Visit, fields: Fields): Promise<Deed | undefined> {
  const { queue: name, kind, name: error, cause } = fields;
  if (name === undefined || kind === undefined || error === undefined || cause === undefined)
    return undefined;
  if (!(visit.granted.scope.queues?.includes(name) ?? true)) return undefined;
  const { settings, granted } = visit;
  const { db, queue } = settings;
  const which = { scope: granted.scope, queue: name, kind, name: error, cause, bound: ERRORS_BOUND };
  const found = await within(db, queue.tables, FIND_MS, (tx) =>
    findOfCause(tx, queue.tables, { ...which, limit: REDRIVE_LIMIT + 1 }),
  );
  const ids = (found ?? []).slice(0, REDRIVE_LIMIT);
  const done: number[] = [];
  for (const id of ids) {
    if ((await queue.redrive(db, id)).redriven > 0) done.push(id);
  }
  const more = (found?.length ?? 0) > REDRIVE_LIMIT;
  return {
    notice: done.length === 0 ? 'none' : more ? 'more' : 'redriven',
    count: done.length,
    ids: done,
    target: { queue: name, kind, error, cause },
    outcome: `${done.length} redriven`,
  };
}

async function redriveKind(visit: Visit, { kind, queue: name }: Fields): Promise<Deed | undefined> {
  // It takes every job of the kind, so it is for who sees them all.
  if (kind === undefined || visit.granted.scope.own.length > 0) return undefined;
  if (name === undefined ? visit.granted.scope.queues !== undefined : !hasQueue(visit, name))
    return undefined;
  const { db, queue } = visit.settings;
  const filter = { kind, limit: REDRIVE_KIND_LIMIT, ...(name !== undefined && { queue: name }) };
  const { redriven } = await queue.redrive(db, filter);
  return {
    notice: redriven === 0 ? 'none' : redriven === REDRIVE_KIND_LIMIT ? 'more' : 'redriven',
    count: redriven,
    target: { kind, ...(name !== undefined && { queue: name }) },
    outcome: `${redriven} redriven`,
  };
}

async function pause(visit: Visit, { queue: name }: Fields, on: boolean): Promise<Deed | undefined> {
  if (name === undefined || !hasQueue(visit, name)) return undefined;
  const { db, queue } = visit.settings;
  const changed = on ? await queue.pause(db, name) : await queue.resume(db, name);
  const outcome = !changed ? 'unchanged' : on ? 'paused' : 'resumed';
  return { notice: outcome, target: { queue: name }, outcome };
}

async function schedule(
  visit: Visit,
  { name }: Fields,
  what: 'run' | 'pause' | 'resume',
): Promise<Deed | undefined> {
  const schedules = schedulesOf(visit);
  const { db } = visit.settings;
  const found = name === undefined ? undefined : await schedules?.find(db, name);
  if (schedules === undefined || found === undefined || !hasQueue(visit, found.queue)) return undefined;
  const target = { schedule: found.name };
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
    // Somebody has removed it since.
    if (error instanceof QueueError && (await schedules.find(db, found.name)) === undefined)
      return { notice: 'no-schedule', target, outcome: 'no such schedule' };
    throw error;
  }
}

async function unblock(visit: Visit, { queue, group }: Fields): Promise<Deed | undefined> {
  const limits = limitsOf(visit);
  if (limits === undefined || queue === undefined || group === undefined || group === '') return undefined;
  if (!limits.has(queue) || !hasQueue(visit, queue)) return undefined;
  const changed = await limits.unblock(visit.settings.db, { queue, group });
  return {
    notice: changed ? 'unblocked' : 'unchanged',
    target: { queue, group },
    outcome: changed ? 'unblocked' : 'unchanged',
  };
}

/** The id of a job in their scope. */
async function ownJob(visit: Visit, text: string): Promise<number | undefined> {
  const id = jobId(text);
  if (id === undefined) return undefined;
  const { settings, granted } = visit;
  const job = await showJob(settings.db, settings.queue.tables, { id, scope: granted.scope, cut: 0 });
  return job?.id;
}

/** A job's id as a URL or a form has it; `undefined` for anything else. */
export function jobId(text: string): number | undefined {
  const id = /^\d{1,16}$/.test(text) ? Number(text) : 0;
  return Number.isSafeInteger(id) && id > 0 ? id : undefined;
}
