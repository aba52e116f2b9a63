import { runNext } from 'drizzle-queue';
import { expect } from 'vitest';
import { findHeldJobs } from '../../src/core/queries/hold/find-held-jobs.ts';
import { finishFreeJobs, finishJobs } from '../../src/core/queries/settle/finish-jobs.ts';
import { parkJobs } from '../../src/core/queries/settle/park-jobs.ts';
import { rescheduleFreeJobs, rescheduleJobs } from '../../src/core/queries/settle/reschedule-jobs.ts';
import {
  type Ended,
  endedTogether,
  finishOf,
  handlersThat,
  insteadOfDiscard,
  isDiscard,
  isFinish,
  isPark,
  isReschedule,
  settlementOf,
} from './endings.ts';
import type { Doings } from './happenings.ts';
import type { World } from './world.ts';

/** How attempts end. */
export function settling(
  world: World,
): Pick<
  Doings,
  'settle' | 'settleTogether' | 'settleLate' | 'settleFree' | 'completeInTransaction' | 'runNextWhile'
> {
  const { app, queue, tables, transaction, model, claims, saw } = world;

  /** Settles attempts of one worker and queue, as a worker does: finishes in one statement, reschedules in another. */
  async function settle(settlements: readonly Ended[]): Promise<void> {
    const held = settlements[0]?.claimed;
    if (held === undefined) return;
    const { db } = app;
    const rows = settlements.map(({ claimed, ending }) => settlementOf(claimed, ending));
    const foundHeld = await findHeldJobs(db, tables, held, rows);
    const finishes = rows.filter(isFinish);
    const reschedules = rows.filter(isReschedule);
    const parks = rows.filter(isPark);
    const woken = new Set(model.live.filter(({ unparked }) => unparked).map(({ id }) => id));
    const finished = finishes.length > 0 ? await finishJobs(db, tables, held, finishes) : new Set<number>();
    const unwanted = finishes
      .filter(({ id }) => !finished.has(id))
      .filter(isDiscard)
      .map(insteadOfDiscard);
    const settled = new Set([
      ...finished,
      ...(unwanted.length > 0 ? await finishJobs(db, tables, held, unwanted) : []),
      ...(reschedules.length > 0 ? (await rescheduleJobs(db, tables, held, reschedules)).keys() : []),
      ...(parks.length > 0 ? (await parkJobs(db, tables, held, parks)).parked.keys() : []),
    ]);
    if (parks.some(({ id }) => woken.has(id) && settled.has(id))) saw('woken before it was parked');

    const effective = new Set<number>();
    for (const { claimed, ending } of settlements) {
      claims.settle(claimed);
      const isEffective = model.settle(claimed, ending);
      if (isEffective) effective.add(claimed.id);
      saw(isEffective ? `settled: ${ending}` : 'a stale settlement refused');
      if (isEffective && !model.livingWorkers.has(claimed.workerId)) saw('settled by a worker that is gone');
    }
    expect(settled).toEqual(effective);
    expect(new Set(foundHeld.keys())).toEqual(effective);
    if (effective.size > 1) saw('several settled at once');
    if (unwanted.some(({ id }) => effective.has(id))) saw('cancelled instead of discarded');
  }

  /** The same, waiting for nobody: what a transaction has locked stays as it is. */
  async function settleFree(settlements: readonly Ended[]): Promise<void> {
    const held = settlements[0]?.claimed;
    if (held === undefined) return;
    const { db } = app;
    const rows = settlements.map(({ claimed, ending }) => settlementOf(claimed, ending));
    const { finished, locked: unfinished } = await finishFreeJobs(db, tables, held, rows.filter(isFinish));
    const unwanted = rows
      .filter(isDiscard)
      .filter(({ id }) => !finished.has(id) && !unfinished.has(id))
      .map(insteadOfDiscard);
    const { finished: cancelled, locked: uncancelled } = await finishFreeJobs(db, tables, held, unwanted);
    const { rescheduled, locked: kept } = await rescheduleFreeJobs(
      db,
      tables,
      held,
      rows.filter(isReschedule),
    );
    const { parked, locked: unparked } = await parkJobs(db, tables, held, rows.filter(isPark));

    const effective = new Set<number>();
    const locked = new Set<number>();
    for (const { claimed, ending } of settlements) {
      if (model.locked.has(claimed.id) && model.holds(claimed)) {
        locked.add(claimed.id);
        continue;
      }
      claims.settle(claimed);
      if (model.settle(claimed, ending)) effective.add(claimed.id);
    }
    expect(new Set([...finished, ...cancelled, ...rescheduled.keys(), ...parked.keys()])).toEqual(effective);
    expect(new Set([...unfinished, ...uncancelled, ...kept, ...unparked])).toEqual(locked);
    if (effective.size > 0) saw('settled without waiting');
    if (locked.size > 0) saw('a locked job left unsettled');
  }

  return {
    settle: async ({ attempt, ending }) => {
      const claimed = claims.anyUnsettled(attempt);
      if (claimed !== undefined) await settle([{ claimed, ending }]);
    },

    settleTogether: async ({ attempt, endings }) => {
      await settle(endedTogether(claims, attempt, endings));
    },

    settleLate: async ({ attempt, ending }) => {
      const claimed = claims.any(attempt);
      if (claimed !== undefined) await settle([{ claimed, ending }]);
    },

    settleFree: async ({ attempt, endings }) => {
      await settleFree(endedTogether(claims, attempt, endings));
    },

    completeInTransaction: async ({ attempt, commit, finished }) => {
      const claimed = claims.anyUnsettled(attempt);
      if (claimed === undefined) return;
      const undo = new Error('undo');
      const holds = model.holds(claimed);
      let ended = new Set<number>();
      const committing = transaction.db.transaction(async (tx) => {
        ended = await finishJobs(tx, tables, claimed, [finishOf(claimed, 'complete')]);
        await world.whileLocked(holds ? [claimed.id] : [], finished);
        if (!commit) throw undo;
      });
      if (commit) claims.settle(claimed);
      if (commit) await committing;
      else await expect(committing).rejects.toBe(undo);
      expect(ended).toEqual(new Set(holds ? [claimed.id] : []));
      if (commit) expect(model.settle(claimed, 'complete')).toBe(holds);
      if (holds) saw(commit ? 'completed in a transaction' : 'a completion rolled back');
    },

    runNextWhile: async ({ queue: name, kinds, ending, ran }) => {
      if (model.groups.isGrouped(name)) {
        const handlers = handlersThat(ending, kinds);
        const answer = runNext(transaction.db, { queue, handlers, queues: [name] });
        await expect(answer).rejects.toThrow('which runNext cannot keep');
        return;
      }
      // A claim goes by times that the model may not know yet.
      await world.compare();
      const claim = { workerId: null, queue: name, kinds, limit: 1, sweep: true, nowUs: world.nowUs };
      const [next] = model.claimable(claim);
      const handlers = handlersThat(ending, kinds);
      // It remembers, for each database object, where it was; what is made due behind that it would find later.
      const anew: typeof transaction.db = Object.create(transaction.db);
      const answer = await world.interrupted(() => runNext(anew, { queue, handlers, queues: [name] }), {
        'runNext: ran': () => world.whileLocked(next ? [next.id] : [], ran),
      });
      expect(answer?.job.id).toBe(next?.id);
      if (next === undefined) return;
      model.runNext(next, ending);
      saw(`run in one transaction: ${answer?.outcome}`);
    },
  };
}
