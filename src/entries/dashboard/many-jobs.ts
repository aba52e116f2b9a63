import type { Executor } from '../../index.ts';
import {
  countMany,
  databaseTime,
  findLastId,
  findMany,
  type ManyAction,
  type ManyJobs,
  type ManySlice,
} from '../../internal.ts';
import { cancelFound } from '../filter/cancel-found.ts';
import { MAX_PINNED, pinned } from '../filter/filter.ts';
import type { Telling } from '../filter/leave-refused.ts';
import { makeDue } from '../filter/make-due.ts';
import { redriveFound } from '../filter/redrive-found.ts';
import type { DashboardAction } from './access.ts';
import { within } from './looks.ts';
import { askWith } from './searches.ts';
import { BATCH, doStretch, type Progress, type Stretch } from './stretch.ts';
import { LOOK_MS, scopeName, type Visit } from './visit.ts';
import { filterOfVisit } from './visit-filter.ts';

/** How long one statement that looks for jobs may take. */
export const FIND_MS = 5_000;
/** The most jobs that can be selected: those of one page. */
const MAX_SELECTED = 100;

/** The right that each needs. */
export const RIGHTS: Readonly<Record<ManyAction, DashboardAction>> = {
  cancel: 'cancel',
  redrive: 'redrive',
  'run-now': 'runNow',
};

/** The jobs that a user has chosen, as a URL or a form names them. */
export interface Chosen {
  readonly action: ManyAction;
  /** The filter, with the times that it means now. */
  readonly q: string;
  /** `undefined`: all that the filter finds. */
  readonly ids: readonly number[] | undefined;
  readonly jobs: ManyJobs;
}

/** `undefined` for what names no jobs, or a filter that is not understood: that must not mean all of them. */
export function chosenOf(
  visit: Visit,
  { action, of, q, ids }: { action: string; of: string; q: string; ids: readonly string[] },
): Chosen | undefined {
  if (!isManyAction(action) || (of !== 'selected' && of !== 'all') || q.length > MAX_PINNED) return undefined;
  const { granted } = visit;
  const filter = filterOfVisit(visit, q);
  if (of === 'all') {
    if (filter.problems.length > 0) return undefined;
    const jobs = { action, search: filter.search, scope: granted.scope, ids: undefined };
    return { action, q: pinned(filter), ids: undefined, jobs };
  }
  const selected = ids.map(Number);
  if (selected.length === 0 || selected.length > MAX_SELECTED) return undefined;
  if (selected.some((id) => !Number.isSafeInteger(id) || id <= 0)) return undefined;
  // Of those that are ticked the filter says only whether cancelled ones are to be put back.
  const state = filter.search.state === 'cancelled' ? 'cancelled' : undefined;
  const search = { state: action === 'redrive' ? state : undefined, payload: [], own: [] } as const;
  const jobs = { action, search, scope: granted.scope, ids: selected };
  return { action, q, ids: selected, jobs };
}

/** How many jobs these are, and which are meant. */
export interface Counted {
  /** `undefined` when counting took too long. */
  readonly jobs: number | undefined;
  /** The last of them, or where they were not counted the last job of all. */
  readonly until: number;
  /** When they were counted, by the database's clock. */
  readonly asOf: number;
  /** The filter by which. */
  readonly q: string;
}

/** Counts these jobs; `undefined` when even finding the last of all jobs took too long. */
export async function countChosen(visit: Visit, chosen: Chosen): Promise<Counted | undefined> {
  const { searches, viewer, settings } = visit;
  const { db, queue } = settings;
  const { tables } = queue;
  const { action, q, jobs } = chosen;
  // Of the filter as it was given: its times move on.
  const name = `count ${scopeName(visit)} ${visit.query}`;
  // Rounded up: what has ended in the same millisecond is among them.
  const timeOf = async (tx: Executor, seenAt: Date | undefined) =>
    (seenAt ?? (await databaseTime(tx, tables))).getTime() + 1;
  const counted = await askWith(jobs, () =>
    searches.at(viewer, name, LOOK_MS, async (tx, seenAt) => {
      const asOf = await timeOf(tx, seenAt);
      return { ...(await countMany(tx, tables, jobs)), asOf, q };
    }),
  );
  if (counted !== undefined) return counted.value;
  return await within(db, tables, LOOK_MS, async (tx, seenAt) => {
    const asOf = await timeOf(tx, seenAt);
    const until = await findLastId(tx, tables, action === 'redrive' ? 'results' : 'live');
    return { jobs: undefined, until, asOf, q };
  });
}

/** Where to stop, and which jobs to leave out. */
export interface Bounds {
  /** The last id that is meant. */
  readonly until: number;
  /** Discarded or cancelled jobs that ended later are not meant: they were put back already. */
  readonly asOf: Date;
}

/**
 * Does it as far as one request goes. It tries only jobs that are found in the scope just then, by id: what
 * changes in between, or what another operator was first with, stays as it is and is not counted.
 */
export async function doWithChosen(
  visit: Visit,
  { jobs, action }: Chosen,
  before: Progress,
  { until, asOf }: Bounds,
): Promise<Stretch> {
  return await doStretch(before, {
    find: (after) => find(visit, { ...jobs, after, until, limit: BATCH }),
    act: (ids, telling) => doWith(visit, action, jobs, { ids, asOf }, telling),
  });
}

/** @throws UnfitValueError as when they are counted */
async function find({ settings }: Visit, slice: ManySlice): Promise<number[] | undefined> {
  const { db, queue } = settings;
  return await askWith(slice, () =>
    within(db, queue.tables, FIND_MS, (tx) => findMany(tx, queue.tables, slice)),
  );
}

async function doWith(
  visit: Visit,
  action: ManyAction,
  { search }: ManyJobs,
  { ids, asOf }: { readonly ids: readonly number[] } & Pick<Bounds, 'asOf'>,
  telling: Telling<number>,
): Promise<void> {
  const { db, queue } = visit.settings;
  const { note } = telling;
  switch (action) {
    case 'cancel': {
      const which = { ids, state: search.state };
      await cancelFound(
        queue,
        db,
        which,
        { reason: reasonOf(visit) },
        { ...telling, note: ({ cancelled, requested }) => note(cancelled + requested) },
      );
      break;
    }
    case 'redrive': {
      const state = search.state === 'cancelled' ? 'cancelled' : 'discarded';
      const which = { ids, state, finishedBefore: asOf } as const;
      await redriveFound(queue, db, which, { ...telling, note: ({ redriven }) => note(redriven) });
      break;
    }
    case 'run-now':
      await makeDue(queue, db, ids, telling);
  }
}

/** Why a job is cancelled, as its result says. */
export function reasonOf({ granted: { actor } }: Visit): string {
  return actor === undefined ? 'cancelled in the dashboard' : `cancelled in the dashboard by ${actor}`;
}

function isManyAction(action: string): action is ManyAction {
  return Object.hasOwn(RIGHTS, action);
}
