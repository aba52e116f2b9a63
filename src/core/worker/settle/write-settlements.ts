import { cancellation, type Finish, type Transition } from '../../job/transition.ts';
import { cancelJob } from '../../queries/settle/cancel-job.ts';
import { findFates } from '../../queries/settle/find-fates.ts';
import { finishByKeptPlan, finishFreeJobs, finishJobs } from '../../queries/settle/finish-jobs.ts';
import { parkJobs } from '../../queries/settle/park-jobs.ts';
import { rescheduleFreeJobs, rescheduleJobs } from '../../queries/settle/reschedule-jobs.ts';
import type { QueueTables } from '../../schema/create-queue-tables.ts';
import { faultPoint } from '../../sql/fault-point.ts';
import type { Holder } from '../../sql/fence.ts';
import type { RowLocks } from '../../sql/row-locks.ts';
import { groupsIn, membersIn } from '../../sql/statement-context.ts';
import type { WorkerEmitter } from '../base/events.ts';
import type { KeptPlans } from '../statements/kept-plans.ts';
import type { WorkerRunner } from '../statements/statements.ts';
import {
  type CancelledInstead,
  isFinish,
  isPark,
  isReschedule,
  type PendingSettlement,
} from './settlement.ts';
import { whatBecame } from './what-became.ts';

export interface WriteSettlementsOptions {
  readonly db: WorkerRunner;
  readonly tables: QueueTables;
  readonly holder: Holder;
  readonly keptPlans: KeptPlans;
  readonly events: WorkerEmitter;
  /** Aborted when nothing is to be sent any more. */
  readonly giveUp: AbortSignal;
}

/** What one statement has done. */
interface WriteResult {
  readonly written: { has(id: number): boolean };
  /** Of jobs that were put back, why their end was asked for, if it was. */
  readonly cancelReasons?: ReadonlyMap<number, string | null>;
  readonly locked: ReadonlySet<number>;
}

/** So many jobs can be joined with their results in loops. */
const FEW_RESULTS = 50;
const NONE: ReadonlySet<number> = new Set();

/**
 * Sends a batch once, one statement for each sort of transition, and answers its settlements. Returns those
 * whose rows are locked; `briefly` leaves none of those that end or are put back.
 * @throws what the database says; the settlements of the statements before are answered
 */
export async function writeSettlements(
  options: WriteSettlementsOptions,
  batch: readonly PendingSettlement[],
  locks: Exclude<RowLocks, 'wait'>,
): Promise<PendingSettlement[]> {
  const { db, tables, holder, giveUp } = options;
  const open = batch.filter(({ answered }) => !answered);
  for (const settlement of open) settlement.sent = false;

  const locked: PendingSettlement[] = [];
  const finishes = open.filter(isFinish);
  if (finishes.length > 0) {
    noteSent(finishes);
    const { finished, locked: left } =
      locks === 'skip'
        ? await finishFreeJobs(db, tables, holder, finishes)
        : { finished: await finish(options, finishes, locks), locked: NONE };
    await faultPoint('settle: finished');
    const isUnwanted = ({ id, transition }: PendingSettlement<Finish>) =>
      transition.state === 'discarded' && !finished.has(id) && !left.has(id);
    const others = finishes.filter((settlement) => !isUnwanted(settlement));
    locked.push(...(await answer(options, others, { written: finished, locked: left })));
    locked.push(...(await cancelUnwanted(options, finishes.filter(isUnwanted))));
  }
  // As a rule all of them end.
  if (finishes.length === open.length || giveUp.aborted) return locked;

  const reschedules = open.filter(isReschedule);
  if (reschedules.length > 0) {
    noteSent(reschedules);
    const { rescheduled, locked: left } =
      locks === 'skip'
        ? await rescheduleFreeJobs(db, tables, holder, reschedules)
        : { rescheduled: await rescheduleJobs(db, tables, holder, reschedules, { locks }), locked: NONE };
    await faultPoint('settle: written');
    const written = { written: rescheduled, cancelReasons: rescheduled, locked: left };
    locked.push(...(await answer(options, reschedules, written)));
  }

  const parks = open.filter(isPark);
  if (parks.length > 0 && !giveUp.aborted) {
    noteSent(parks);
    const { parked, locked: left } = await parkJobs(db, tables, holder, parks);
    await faultPoint('settle: parked');
    const written = { written: parked, cancelReasons: parked, locked: left };
    locked.push(...(await answer(options, parks, written)));
  }
  return locked;
}

/** Ends jobs, by a statement whose plan is kept unless more than a few results hang on it. */
async function finish(
  { db, tables, holder, keptPlans }: WriteSettlementsOptions,
  finishes: readonly PendingSettlement<Finish>[],
  locks: RowLocks,
): Promise<Set<number>> {
  const hasFewResults =
    finishes.length <= FEW_RESULTS || finishes.every(({ transition }) => transition.keepResult === false);
  // The children of a cancelled job are looked for as well.
  const mayHaveChildren =
    membersIn(tables) !== undefined && finishes.some(({ transition }) => transition.state === 'cancelled');
  const isKept = hasFewResults && !mayHaveChildren && !groupsIn(tables, holder.queue);
  for (let { size } = keptPlans; isKept && size !== undefined; { size } = keptPlans) {
    const finished = await finishByKeptPlan(db, tables, holder, finishes, { locks, ifTableIs: size });
    if (finished !== undefined) return finished;
    keptPlans.noteOther(size);
  }
  return await finishJobs(db, tables, holder, finishes, { locks });
}

/** Jobs that were not discarded: their end was requested, and they end as cancelled; or they are lost. */
async function cancelUnwanted(
  options: WriteSettlementsOptions,
  discards: readonly PendingSettlement<Finish>[],
): Promise<PendingSettlement[]> {
  const { db, tables, holder, giveUp } = options;
  if (discards.length === 0 || giveUp.aborted) return [];
  const fates = await findFates(db, tables, holder.queue, discards);
  const cancelReasons = new Map<number, string>();
  for (const { id, fence } of discards) {
    const fate = fates.get(id);
    const isHeld = fate?.state === null && fate.held && fate.fence === fence;
    if (isHeld && fate.cancelReason !== null) cancelReasons.set(id, fate.cancelReason);
  }
  const cancels = discards.flatMap(({ id, fence, transition }) => {
    const reason = cancelReasons.get(id);
    return reason === undefined ? [] : [{ id, fence, transition: cancelledInstead(transition, reason) }];
  });
  if (cancels.length === 0) return await answer(options, discards, { written: NONE, locked: NONE });
  const { finished, locked } = await finishFreeJobs(db, tables, holder, cancels);
  for (const discard of discards) {
    const cancelled = cancelReasons.get(discard.id);
    if (cancelled !== undefined && finished.has(discard.id)) discard.answer({ cancelled });
  }
  const others = discards.filter(({ answered }) => !answered);
  return await answer(options, others, { written: NONE, locked });
}

function cancelledInstead({ error, ...transition }: Finish, reason: string): Finish {
  const { attempt = 0, startedAt } = error ?? {};
  const cancelled = { ...cancellation(attempt, reason), ...(startedAt !== undefined && { startedAt }) };
  return { ...transition, state: 'cancelled', error: cancelled };
}

/** A batch breaks off at the first statement that fails: what comes after it has taken no effect. */
function noteSent(settlements: readonly PendingSettlement[]): void {
  for (const settlement of settlements) settlement.sent = true;
}

/** Returns those whose rows are locked. */
async function answer<TTransition extends Transition>(
  options: WriteSettlementsOptions,
  sent: readonly PendingSettlement<TTransition>[],
  { written, cancelReasons, locked }: WriteResult,
): Promise<PendingSettlement<TTransition>[]> {
  const unmatched: PendingSettlement<TTransition>[] = [];
  // First what is written: if the query below fails, it must not be sent again and look lost.
  for (const settlement of sent) {
    const { id } = settlement;
    if (!written.has(id)) {
      if (!locked.has(id)) unmatched.push(settlement);
      continue;
    }
    const cancelReason = cancelReasons?.get(id) ?? null;
    if (cancelReason === null) settlement.answer('written');
    else settlement.answer(await endUnwanted(options, settlement, cancelReason));
  }
  const fates = await fatesOf(options, unmatched);
  for (const settlement of unmatched) {
    if (!settlement.uncertain) {
      settlement.answer('lost');
      continue;
    }
    const fate = fates.get(settlement.id);
    const became = whatBecame(settlement, fate);
    const unwanted = became === 'written' && fate?.state === null && fate.fence === settlement.fence;
    const cancelReason = unwanted ? fate.cancelReason : null;
    settlement.answer(cancelReason === null ? became : await endUnwanted(options, settlement, cancelReason));
  }
  return locked.size === 0 ? [] : sent.filter(({ id, answered }) => locked.has(id) && !answered);
}

/** Where those jobs are now for which an earlier try may have taken effect. */
async function fatesOf(
  { db, tables, holder, giveUp }: WriteSettlementsOptions,
  unmatched: readonly PendingSettlement[],
): ReturnType<typeof findFates> {
  const uncertain = unmatched.filter((settlement) => settlement.uncertain);
  return uncertain.length === 0 || giveUp.aborted
    ? new Map()
    : await findFates(db, tables, holder.queue, uncertain);
}

/** Ends a job that was put back with a request for its end. If this fails, the next claim ends it. */
async function endUnwanted(
  { db, tables, holder, events, giveUp }: WriteSettlementsOptions,
  { id, transition }: PendingSettlement,
  cancelReason: string,
): Promise<'written' | CancelledInstead> {
  if (giveUp.aborted) return 'written';
  const attempt = transition.type === 'finish' ? 0 : transition.attempt;
  const error = cancellation(attempt, cancelReason);
  try {
    const ended = await cancelJob(db, tables, { id, queue: holder.queue, reason: error });
    return ended ? { cancelled: cancelReason } : 'written';
  } catch (refusal) {
    // Not the batch's failure: its jobs are put back.
    events.emit('error', { error: refusal, during: `cancelling job ${id} of '${holder.queue}'` });
    return 'written';
  }
}
