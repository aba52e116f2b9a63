import { LeaseLostError, QueueError } from '../../errors.ts';
import { transactionUntil } from '../drivers/transaction-until.ts';
import { isAwaited } from '../job/awaited.ts';
import { withoutQuery } from '../job/describe-error.ts';
import type { Outcome } from '../job/outcome.ts';
import { type Transition, transitionFor, verdictOn } from '../job/transition.ts';
import type { ClaimedJob } from '../queries/claim/claim-jobs.ts';
import { findHeldJobs } from '../queries/hold/find-held-jobs.ts';
import { reclaimJob } from '../queries/hold/reclaim-job.ts';
import { finishJobs } from '../queries/settle/finish-jobs.ts';
import { hasCancelled } from '../queries/settle/has-cancelled.ts';
import { notifyOfEnds } from '../queries/settle/notify-of-ends.ts';
import { parkJobs } from '../queries/settle/park-jobs.ts';
import { rescheduleJobs } from '../queries/settle/reschedule-jobs.ts';
import { transactionId } from '../queries/settle/transaction-id.ts';
import type { Queue } from '../queue/queue.ts';
import { keepContext } from '../runtime.ts';
import type { QueueTables } from '../schema/create-queue-tables.ts';
import type { Database, Executor, Transaction } from '../sql/executor.ts';
import { faultPoint } from '../sql/fault-point.ts';
import type { Holder } from '../sql/fence.ts';
import { transact } from '../sql/transact.ts';
import { isAboutAccess, isAboutLocks, isAboutTheServer, isCancelled } from './base/refusal.ts';
import type { ContextFeature } from './context-feature.ts';
import { Attempt, type AttemptEnvironment } from './run/attempt.ts';
import { executeJob } from './run/execute-job.ts';
import type { Handler } from './run/handler.ts';
import type { Settlement } from './settle/settlement.ts';

/** The job that {@link runNext} has run, and how its attempt ended. */
export interface RanJob {
  readonly job: ClaimedJob;
  readonly outcome: 'completed' | 'failed' | 'snoozed' | 'waiting' | 'cancelled';
  /** What the handler threw, when the attempt failed. */
  readonly error?: unknown;
}

/** What is used of a queue. */
export type RunEnvironment = Pick<Queue, 'tables' | 'around' | 'workflows'>;

/** Thrown to roll the whole transaction back: the handler that was left behind may still be writing in it. */
class AbandonedAttempt extends Error {
  constructor(
    readonly attempt: Attempt,
    readonly outcome: Outcome,
  ) {
    super('abandoned');
  }
}

/** An attempt whose transaction was rolled back. */
type Undone = Pick<AbandonedAttempt, 'attempt' | 'outcome'>;

class Undo extends Error {
  constructor(readonly outcome: Outcome) {
    super('undo');
  }
}

/**
 * Runs one job in one transaction, from its claim to the end of its attempt; `undefined` where the claim
 * brings none. When the attempt fails, its writes alone are undone.
 *
 * **Under concurrency.** The lock of the row is the hold. An attempt whose handler was left behind, or whose
 * end the database refuses, rolls everything back, and is then settled unless another worker has claimed the
 * job since.
 *
 * @param onDecided is told what becomes of the job, unless its handler has completed or cancelled it
 */
export async function runInTransaction(
  db: Database,
  { tables, around, workflows }: RunEnvironment,
  handlers: ReadonlyMap<string, Handler>,
  claim: (tx: Transaction) => Promise<ClaimedJob | undefined>,
  onDecided?: (transition: Transition) => void,
): Promise<RanJob | undefined> {
  // `createQueue` has put it there, or nothing.
  const added = (workflows as ContextFeature | undefined)?.forTransaction();
  let ran: Attempt | undefined;
  let decided: Transition | undefined;
  try {
    const ranJob = await transact(db, async (tx) => {
      const job = await claim(tx);
      const handler = job === undefined ? undefined : handlers.get(job.kind);
      if (job === undefined || handler === undefined) return undefined;
      const { attempt, outcome } = await runInSavepoint(tx, { tables, around, added }, job, handler);
      ran = attempt;
      await faultPoint('runNext: ran');
      const transition = outcome.type === 'committed' ? undefined : transitionFor(outcome, attempt.facts);
      const isWritten = transition === undefined || (await isWrittenIn(tx, tables, attempt, transition));
      // The claim's lock keeps all others from the job, but not the handler: `cancelMany` may fit its own.
      if (!isWritten && !(await hasCancelled(tx, tables, job))) throw new LeaseLostError(job.kind, job.id);
      if (transition === undefined || transition.type === 'finish') await notify(tx, tables, job);
      if (!isWritten) return { job, outcome: 'cancelled' as const };
      decided = transition;
      return toRanJob(attempt, outcome);
    });
    if (decided !== undefined) onDecided?.(decided);
    return ranJob;
  } catch (error) {
    const undone = error instanceof AbandonedAttempt ? error : refusedEnd(ran, error);
    if (undone === undefined) throw error;
    const { attempt } = undone;
    attempt.undo();
    await faultPoint('runNext: rolled back');
    const written = await writeAnew(db, tables, undone);
    if (written !== undefined) onDecided?.(written.transition);
    return toRanJob(attempt, written?.outcome ?? undone.outcome);
  }
}

/**
 * Of an attempt whose end the database has refused, because of what the handler wrote (a deferred constraint
 * fails at the commit) or of what was to be written of the job: it has failed, as in a worker. Otherwise the
 * same job would be the next one for ever. `undefined` where the reason lies elsewhere, and may pass.
 */
function refusedEnd(attempt: Attempt | undefined, error: unknown): Undone | undefined {
  if (attempt === undefined || isAboutTheServer(error) || isAboutAccess(error)) return undefined;
  if (isAboutLocks(error) || isCancelled(error)) return undefined;
  return { attempt, outcome: { type: 'failed', error: withoutQuery(error) } };
}

async function runInSavepoint(
  tx: Transaction,
  { tables, around, added }: Pick<AttemptEnvironment, 'tables' | 'around' | 'added'>,
  job: ClaimedJob,
  handler: Handler,
): Promise<{ attempt: Attempt; outcome: Outcome }> {
  const attemptIn = (savepoint: Transaction): Attempt => {
    // A handler that is left behind still has `db` after its connection has gone to another user of the pool.
    const db = transactionUntil(savepoint, () => attempt.overError);
    const checkTransaction = sameAs(tx, tables);
    const attempt: Attempt = new Attempt(job, handler, {
      db,
      tables,
      workerId: null,
      around,
      added,
      inContext: keepContext(),
      // The caller gets the job.
      showsJobs: () => true,
      checkTransaction,
    });
    return attempt;
  };
  let attempt = attemptIn(tx);
  let outcome: Outcome = { type: 'failed', error: new QueueError('The savepoint did not run') };
  try {
    await tx.transaction(async (savepoint) => {
      attempt = attemptIn(savepoint);
      outcome = await executeJob(attempt);
      // A handler that was told of its deadline and has returned is not left behind: it has done its work.
      if (outcome.type === 'failed' && attempt.reason !== undefined)
        throw new AbandonedAttempt(attempt, outcome);
      if (attempt.completeRan && outcome.type !== 'failed') {
        const held = await findHeldJobs(tx, tables, attempt.holder, [job]);
        outcome = held.get(job.id) === job.fence ? verdictOn(outcome, attempt.facts) : { type: 'committed' };
      }
      if (outcome.type === 'failed') throw new Undo(outcome);
    });
  } catch (error) {
    if (error instanceof AbandonedAttempt) throw error;
    // Anything but our own Undo: the handler left the savepoint in a failed state, and swallowed that.
    outcome = error instanceof Undo ? error.outcome : { type: 'failed', error };
    attempt.undo();
  }
  return { attempt, outcome };
}

async function isWrittenIn(
  db: Executor,
  tables: QueueTables,
  { job: { id, fence }, holder }: Attempt,
  transition: Transition,
): Promise<boolean> {
  return (await writeOne(db, tables, holder, { id, fence, transition })).has(id);
}

async function writeOne(
  db: Executor,
  tables: QueueTables,
  holder: Holder,
  { transition, ...job }: Settlement,
): Promise<{ has(id: number): boolean }> {
  switch (transition.type) {
    case 'finish':
      return await finishJobs(db, tables, holder, [{ ...job, transition }]);
    case 'reschedule':
      return await rescheduleJobs(db, tables, holder, [{ ...job, transition }]);
    case 'park':
      return (await parkJobs(db, tables, holder, [{ ...job, transition }], { locks: 'wait' })).parked;
  }
}

/** Settles an attempt whose claim was rolled back, unless another worker has claimed the job since. */
async function writeAnew(
  db: Database,
  tables: QueueTables,
  { attempt, outcome: failed }: Undone,
): Promise<{ readonly transition: Transition; readonly outcome: Outcome } | undefined> {
  return await transact(db, async (tx) => {
    const reclaimed = await reclaimJob(tx, tables, attempt.job);
    if (reclaimed === undefined) return undefined;
    // It may have been requested since the rollback, of a job that a worker had that is gone.
    const reason = reclaimed.cancelReason;
    const outcome: Outcome = reason === null ? failed : { type: 'cancelled', reason };
    const transition = transitionFor(outcome, attempt.facts);
    const { job } = attempt;
    if (!(await isWrittenIn(tx, tables, attempt, transition))) throw new LeaseLostError(job.kind, job.id);
    if (transition.type === 'finish') await notify(tx, tables, job);
    return { transition, outcome };
  });
}

/** Callers that wait for the job are notified of its end by the commit. */
async function notify(tx: Transaction, tables: QueueTables, { id, metadata }: ClaimedJob): Promise<void> {
  if (isAwaited(metadata)) await notifyOfEnds(tx, tables, [id]);
}

/** A check that a transaction is this one: on another connection `complete` would wait for its lock. */
function sameAs(tx: Transaction, tables: QueueTables): (other: Executor) => Promise<void> {
  return async (other) => {
    if ((await transactionId(other, tables)) === (await transactionId(tx, tables))) return;
    throw new QueueError(
      'In runNext, complete(tx) takes a transaction inside that of the context: ' +
        'db.transaction((tx) => complete(tx)) with its db',
    );
  };
}

function toRanJob({ job, facts }: Attempt, outcome: Outcome): RanJob {
  if (outcome.type === 'committed') return { job, outcome: 'completed' };
  const verdict = verdictOn(outcome, facts);
  if (verdict.type === 'failed') return { job, outcome: 'failed', error: verdict.error };
  // runNext stops nothing, so it interrupts only what was to be cancelled.
  return { job, outcome: verdict.type === 'interrupted' ? 'cancelled' : verdict.type };
}
