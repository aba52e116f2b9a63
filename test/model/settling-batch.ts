import { expect } from 'vitest';
import { Retries } from '../../src/core/time/retries.ts';
import { WorkerEmitter } from '../../src/core/worker/base/events.ts';
import { Settler } from '../../src/core/worker/settle/settle.ts';
import type { SettleResult } from '../../src/core/worker/settle/settlement.ts';
import {
  type Ended,
  endedTogether,
  isDiscard,
  isFinish,
  isPark,
  isReschedule,
  settlementOf,
} from './endings.ts';
import type { Doings, SingleStep } from './happenings.ts';
import { LostAnswer } from './interrupted.ts';
import type { World } from './world.ts';

type Row = Ended & { readonly settlement: ReturnType<typeof settlementOf> };

/** How attempts end together by the code of a worker, which sends one statement for each sort of transition. */
export function settlingBatch(world: World): Pick<Doings, 'settleWhile'> {
  const { app, tables, model, claims, saw } = world;

  /** What a worker is told when its answer is there: the truth. */
  function expectTruth(answer: SettleResult | undefined, isEffective: boolean, isCancelled: boolean): void {
    const what = isCancelled ? { cancelled: 'cancelled' } : 'written';
    expect(answer).toEqual(isEffective ? what : 'lost');
  }

  /**
   * What it is told when the answer was lost, and the write repeated: the truth, where the database still says it. A job that
   * is nowhere says nothing; of one that was redriven, an earlier life may have left the same error.
   */
  function expectWhatIsKnown(
    answer: SettleResult | undefined,
    { claimed: { id, fence }, settlement: { transition } }: Row,
    isEffective: boolean,
  ): void {
    const job = model.jobs.get(id);
    if (job === undefined || job.state === 'gone') return;
    if (!isEffective) {
      if (!model.takenOver.has(`${id}/${fence}`) || job.redriven) return;
      expect(answer).toBe('lost');
      saw('a lost answer of what was lost');
      return;
    }
    const isRecorded = transition.error !== null;
    const isThere = job.state !== 'live' || job.workerId !== null;
    const isNext = job.fence === fence + 1 && isThere && !job.redriven;
    if (job.fence !== fence && !isRecorded && !isNext) return;
    expect(answer).not.toBe('lost');
    saw(job.fence === fence ? 'a lost answer found out' : 'a lost answer found out after another claim');
  }

  return {
    settleWhile: async ({ attempt, endings, finished, written, parked, answerLost }) => {
      const ended = endedTogether(claims, attempt, endings);
      const held = ended[0]?.claimed;
      if (held === undefined) return;
      const giveUp = new AbortController();
      const events = new WorkerEmitter();
      events.on('error', ({ during }) => saw(`an answer lost while ${during.split(' ')[0]}`));
      const settler = new Settler({
        db: app.db,
        tables,
        holder: held,
        events,
        retries: new Retries(),
        giveUp: giveUp.signal,
      });
      const rows = ended.map((one) => ({ ...one, settlement: settlementOf(one.claimed, one.ending) }));
      const effective = new Set<number>();
      const cancelled = new Set<number>();
      const sent = new Set<Row>();

      /** The first time that a statement about these has taken effect: what comes in between, and whether its answer is lost. */
      const taken =
        (sort: (settlement: Row['settlement']) => boolean, steps: readonly SingleStep[], isLost: boolean) =>
        async () => {
          const these = rows.filter((row) => sort(row.settlement) && !sent.has(row));
          if (these.length === 0) return;
          const settle = (row: Row) => {
            claims.settle(row.claimed);
            if (model.settle(row.claimed, row.ending)) effective.add(row.claimed.id);
          };
          for (const row of these) sent.add(row);
          const isUnwanted = ({ claimed: { id, fence } }: Row) => {
            const job = model.jobs.get(id);
            return job?.fence === fence && job.cancelRequested;
          };
          // These are not discarded: they end as cancelled by a later statement.
          const kept = these.filter(
            (row) => isDiscard(row.settlement) && model.holds(row.claimed) && isUnwanted(row),
          );
          for (const row of these) if (!kept.includes(row)) settle(row);
          const requested = these.filter((row) => effective.has(row.claimed.id) && isUnwanted(row));
          await world.takeAll(steps);
          for (const row of kept) {
            settle(row);
            if (effective.has(row.claimed.id)) cancelled.add(row.claimed.id);
          }
          // What was put back with a request for its end is ended at once, unless somebody has claimed it. A lost answer is found
          // out later, when another request may have come, and cannot be told from what others have put back under its fence.
          const unwanted = isLost && sort !== isFinish ? these.filter(isUnwanted) : requested;
          for (const { claimed } of unwanted) {
            const waits = model.live.some(({ id, workerId }) => id === claimed.id && workerId === null);
            if (waits && model.cancel(claimed.id) === 'cancelled') cancelled.add(claimed.id);
          }
          if (isLost) throw new LostAnswer();
        };

      const answers = await world.interrupted(
        () => Promise.all(rows.map(({ settlement }) => settler.settle(settlement))),
        {
          'settle: finished': taken(isFinish, finished, answerLost === 'finished'),
          'settle: written': taken(isReschedule, written, answerLost === 'written'),
          'settle: parked': taken(isPark, parked, answerLost === 'parked'),
        },
        giveUp,
      );
      const sorts = { finished: isFinish, written: isReschedule, parked: isPark } as const;
      rows.forEach((row, index) => {
        const { id } = row.claimed;
        const isLost = answerLost !== undefined && sorts[answerLost](row.settlement);
        if (isLost) expectWhatIsKnown(answers[index], row, effective.has(id));
        else expectTruth(answers[index], effective.has(id), cancelled.has(id));
      });
      if (cancelled.size > 0) saw('cancelled as it was put back');
    },
  };
}
