import { databaseTime } from '../queries/database-time.ts';
import { type CauseOfErrors, countOfCause, findOfCause } from '../queries/find-of-cause.ts';
import type { Deed } from './deed.ts';
import { type Fields, numberOf, timeOf } from './form-fields.ts';
import { within } from './looks.ts';
import { FIND_MS } from './many-jobs.ts';
import { ERRORS_BOUND } from './pages/errors.tsx';
import { BATCH, doStretch } from './stretch.ts';
import type { Visit } from './visit.ts';

/**
 * Puts back the jobs of a group of errors, as far as one request goes: those that were discarded before the
 * page was made that asks. A job that fails again meanwhile is discarded later, so a form that is sent twice,
 * or by two people, puts none back twice. Whoever closes the page finds the rest in their group.
 */
export async function redriveCause(visit: Visit, fields: Fields): Promise<Deed | undefined> {
  const { queue: name, kind, name: error, cause } = fields;
  if (name === undefined || kind === undefined || error === undefined || cause === undefined)
    return undefined;
  if (!(visit.granted.scope.queues?.includes(name) ?? true)) return undefined;
  const { settings, granted } = visit;
  const { db, queue } = settings;
  const look = <T>(ask: Parameters<typeof within<T>>[3]) => within(db, queue.tables, FIND_MS, ask);
  const target = { queue: name, kind, error, cause };
  const slow = { notice: 'slow', count: 0, target, outcome: 'not found in time' } as const;

  const asOf = numberOf(fields.asof) ?? (await databaseTime(db, queue.tables)).getTime() + 1;
  const which = { scope: granted.scope, queue: name, kind, name: error, cause, bound: ERRORS_BOUND };
  const of: CauseOfErrors = { ...which, finishedBefore: timeOf(asOf) };
  let [since, total] = [numberOf(fields.since), numberOf(fields.total)];
  if (since === undefined || total === undefined) {
    const found = await look((tx) => countOfCause(tx, queue.tables, of));
    if (found === undefined) return slow;
    [since, total] = [found.since.getTime(), found.jobs];
  }
  const ofThese = { ...of, finishedAfter: timeOf(since), limit: BATCH };
  const [tried, done, after] = [fields.tried, fields.done, fields.after].map((text) => numberOf(text) ?? 0);
  const before = { tried: tried ?? 0, done: done ?? 0, after: after ?? 0 };
  const stretch = await doStretch(before, {
    find: (last) => look((tx) => findOfCause(tx, queue.tables, { ...ofThese, after: last })),
    act: async (ids) => {
      const { finishedBefore } = of;
      return (await queue.redrive(db, { ids, queue: name, finishedBefore })).redriven;
    },
  });
  const deed = {
    notice: stretch.end === 'slow' ? 'slow' : stretch.done === 0 ? 'none' : 'redriven',
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
