import { type CauseOfErrors, countOfCause, databaseTime, findCause, findOfCause } from '../../internal.ts';
import { redriveFound } from '../filter/redrive-found.ts';
import type { Deed } from './deed.ts';
import { type Fields, numberOf, timeOf } from './form-fields.ts';
import { within } from './looks.ts';
import { FIND_MS } from './many-jobs.ts';
import { ERRORS_BOUND } from './pages/errors.tsx';
import { BATCH, doStretch } from './stretch.ts';
import { audited, type Visit } from './visit.ts';

const HOUR_MS = 3_600_000;
/** The most ids that name a group: those of `ErrorGroup.newest`. */
const MAX_NAMING = 10;

/**
 * Puts back the jobs of a group of errors, as far as one request goes: those that were discarded before the
 * page was made that asks. A job that fails again meanwhile is discarded later, so a form that is sent twice,
 * or by two people, puts none back twice. When the page is closed, the rest stays in its group.
 *
 * The form names the group by the newest of its jobs. A text of the error, or a hash of it, would tell what
 * `show` hides; a reference that this process keeps would mean nothing to another one of the app.
 */
export async function redriveCause(visit: Visit, fields: Fields): Promise<Deed | undefined> {
  const naming = idsIn(fields.newest ?? '');
  if (naming === undefined) return undefined;
  const { settings, granted } = visit;
  const { db, queue } = settings;
  const look = <T>(ask: Parameters<typeof within<T>>[3]) => within(db, queue.tables, FIND_MS, ask);

  const asOf = numberOf(fields.asof) ?? (await databaseTime(db, queue.tables)).getTime() + 1;
  const finishedBefore = timeOf(asOf);
  const [tried, done, after] = [fields.tried, fields.done, fields.after].map((text) => numberOf(text) ?? 0);
  const before = { tried: tried ?? 0, done: done ?? 0, after: after ?? 0 };
  const found = await look(async (tx) => ({
    cause: await findCause(tx, queue.tables, { scope: granted.scope, ids: naming, finishedBefore }),
  }));
  if (found === undefined) return { notice: 'slow', count: before.done, outcome: 'not found in time' };
  if (found.cause === undefined) {
    // They are put back last, so there may be no other left.
    const notice = before.done > 0 ? 'redriven' : 'none';
    return { notice, count: before.done, left: before.tried - before.done, outcome: '0 redriven' };
  }
  const { id, own, ...group } = found.cause;
  const job = { id, own, kind: group.kind, queue: group.queue };
  const error = audited(visit, job, 'errorName', group.name);
  const cause = audited(visit, job, 'error', group.cause);
  const target = { queue: group.queue, kind: group.kind, error, cause };
  const slow = { notice: 'slow', count: before.done, target, outcome: 'not found in time' } as const;

  // Of the hours that the page was about.
  const hours = numberOf(fields.hours);
  const of: CauseOfErrors = {
    ...{ ...group, scope: granted.scope, bound: ERRORS_BOUND, finishedBefore },
    finishedAfter: hours === undefined ? undefined : timeOf(Math.max(0, asOf - hours * HOUR_MS)),
  };
  let [since, total] = [numberOf(fields.since), numberOf(fields.total)];
  if (since === undefined || total === undefined) {
    const counted = await look((tx) => countOfCause(tx, queue.tables, of));
    if (counted === undefined) return slow;
    [since, total] = [counted.since.getTime(), counted.jobs];
  }
  const ofThese = { ...of, finishedAfter: timeOf(since), limit: BATCH };
  const stretch = await doStretch(before, {
    find: (last) => look((tx) => findOfCause(tx, queue.tables, { ...ofThese, after: last })),
    act: async (ids, { note, ...telling }) => {
      const which = { ids, queue: group.queue, finishedBefore };
      await redriveFound(queue, db, which, { ...telling, note: ({ redriven }) => note(redriven) });
    },
  });
  const deed = {
    notice: stretch.end === 'slow' ? 'slow' : stretch.tried === 0 ? 'none' : 'redriven',
    count: stretch.done,
    left: stretch.tried - stretch.done,
    ids: stretch.ids,
    target,
    outcome: `${stretch.done - before.done} redriven`,
  } as const;
  if (stretch.end !== 'more') return deed;
  const kept = { asof: String(asOf), since: String(since), total: String(total) };
  return { ...deed, goesOn: { path: 'redrive-cause', progress: stretch, total, kept } };
}

/** The ids that a form names a group by; `undefined` for anything else. */
function idsIn(text: string): number[] | undefined {
  const ids = text.split(' ').map((each) => numberOf(each) ?? 0);
  return ids.length <= MAX_NAMING && ids.every((id) => id > 0) ? ids : undefined;
}
