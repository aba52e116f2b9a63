import { runNext } from 'drizzle-queue';
import { expect } from 'vitest';
import { findHeldJobs } from '../../src/queries/find-held-jobs.ts';
import { finishJobs } from '../../src/queries/finish-jobs.ts';
import { rescheduleJobs } from '../../src/queries/reschedule-jobs.ts';
import { WorkerEmitter } from '../../src/worker/attempt/events.ts';
import { Settler } from '../../src/worker/attempt/settle.ts';
import { Retries } from '../../src/worker/time/retries.ts';
import { type Claimed, finishOf, handlersThat, isFinish, isReschedule, settlementOf } from './endings.ts';
import type { Doings } from './happenings.ts';
import { LostAnswer } from './interrupted.ts';
import type { Ending } from './job-model.ts';
import { oneOf } from './one-of.ts';
import { queue, tables, type World } from './world.ts';

/** An attempt, and how it ends. */
interface Ended {
  readonly claimed: Claimed;
  readonly ending: Ending;
}

/** How attempts end. */
export function settling(
  world: World,
): Pick<
  Doings,
  'settle' | 'settleTogether' | 'settleLate' | 'settleWhile' | 'completeInTransaction' | 'runNextWhile'
> {
  const { app, transaction, model, claims, saw } = world;

  /** Settles attempts of one worker and queue, as a worker does: finishes in one statement, reschedules in another. */
  async function settle(settlements: readonly Ended[]): Promise<void> {
    const held = settlements[0]?.claimed;
    if (held === undefined) return;
    const { db } = app;
    const rows = settlements.map(({ claimed, ending }) => settlementOf(claimed, ending));
    const foundHeld = await findHeldJobs(db, tables, held, rows);
    const finishes = rows.filter(isFinish);
    const reschedules = rows.filter(isReschedule);
    const settled = new Set([
      ...(finishes.length > 0 ? await finishJobs(db, tables, held, finishes) : []),
      ...(reschedules.length > 0 ? (await rescheduleJobs(db, tables, held, reschedules)).keys() : []),
    ]);

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
  }

  /** What one worker has in one queue, with how it ends. */
  function endedTogether(attempt: number, endings: readonly Ending[]): Ended[] {
    return claims
      .ofOneWorker(attempt)
      .slice(-endings.length)
      .map((claimed, index) => ({ claimed, ending: oneOf(endings, index) }));
  }

  return {
    settle: async ({ attempt, ending }) => {
      const claimed = claims.anyUnsettled(attempt);
      if (claimed !== undefined) await settle([{ claimed, ending }]);
    },

    settleTogether: async ({ attempt, endings }) => {
      await settle(endedTogether(attempt, endings));
    },

    settleLate: async ({ attempt, ending }) => {
      const claimed = claims.any(attempt);
      if (claimed !== undefined) await settle([{ claimed, ending }]);
    },

    settleWhile: async ({ attempt, endings, finished, written, answerLost }) => {
      const ended = endedTogether(attempt, endings);
      const held = ended[0]?.claimed;
      if (held === undefined) return;
      const giveUp = new AbortController();
      const events = new WorkerEmitter();
      events.on('error', ({ during }) => saw(`an answer lost while ${during.split(' ')[0]}`));
      const settler = new Settler({
        db: app.db,
        tables,
        held,
        events,
        retries: new Retries(),
        giveUp: giveUp.signal,
      });
      const rows = ended.map((one) => ({ ...one, settlement: settlementOf(one.claimed, one.ending) }));
      const effective = new Set<number>();
      const cancelled = new Set<number>();
      const settleInModel = (which: typeof rows) => {
        for (const { claimed, ending } of which) {
          claims.settle(claimed);
          if (model.settle(claimed, ending)) effective.add(claimed.id);
        }
      };
      let finishedOnce = false;
      let again = false;
      const answers = await world.interrupted(
        () => Promise.all(rows.map(({ settlement }) => settler.settle(settlement))),
        {
          'settle: finished': async () => {
            if (again || finishedOnce) return;
            finishedOnce = true;
            settleInModel(rows.filter(({ settlement }) => isFinish(settlement)));
            await world.takeAll(finished);
          },
          'settle: written': async () => {
            if (again) return;
            again = true;
            const reschedules = rows.filter(({ settlement }) => isReschedule(settlement));
            settleInModel(reschedules);
            const isRequested = ({ claimed: { id, fence } }: (typeof rows)[number]) => {
              const job = model.jobs.get(id);
              return effective.has(id) && job?.fence === fence && job.cancelRequested;
            };
            const requested = reschedules.filter(isRequested);
            await world.takeAll(written);
            // What was put back with a request for its end is ended at once, unless somebody has claimed it. A lost answer is
            // found out later, when another request may have come.
            for (const { claimed } of answerLost ? reschedules.filter(isRequested) : requested) {
              const waits = model.live.some(({ id, workerId }) => id === claimed.id && workerId === null);
              if (waits && model.cancel(claimed.id) === 'cancelled') cancelled.add(claimed.id);
            }
            if (answerLost) throw new LostAnswer();
          },
        },
        giveUp,
      );
      // What was put back and whose answer was lost is told by where the job is now, which does not say it for ever.
      rows.forEach(({ claimed: { id, fence }, settlement }, index) => {
        if (!answerLost || !isReschedule(settlement)) {
          const what = cancelled.has(id) ? { cancelled: 'cancelled' } : 'written';
          expect(answers[index]).toEqual(effective.has(id) ? what : 'lost');
        } else if (effective.has(id) && model.jobs.get(id)?.fence === fence) {
          expect(answers[index]).not.toBe('lost');
          saw('a lost answer found out');
        }
      });
      if (cancelled.size > 0) saw('cancelled as it was put back');
    },

    completeInTransaction: async ({ attempt, commit, finished }) => {
      const claimed = claims.anyUnsettled(attempt);
      if (claimed === undefined) return;
      const undo = new Error('undo');
      const holds = model.holds(claimed);
      let ended = new Set<number>();
      const committing = transaction.db.transaction(async (tx) => {
        ended = await finishJobs(tx, tables, claimed, [finishOf(claimed, 'complete')]);
        await world.whileLocked(holds ? claimed.id : undefined, finished);
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
      // A claim goes by times that the model may not know yet.
      await world.compare();
      const claim = { workerId: null, queue: name, kinds, limit: 1, sweep: true, nowUs: world.nowUs };
      const [next] = model.claimable(claim);
      const handlers = handlersThat(ending, kinds);
      const answer = await world.interrupted(
        () => runNext(transaction.db, { queue, handlers, queues: [name] }),
        { 'runNext: ran': () => world.whileLocked(next?.id, ran) },
      );
      expect(answer?.job.id).toBe(next?.id);
      if (next === undefined) return;
      model.runNext(next, ending);
      saw(`run in one transaction: ${answer?.outcome}`);
    },
  };
}
