import { transactionUntil } from '../drivers/transaction-until.ts';
import { LeaseLostError, QueueError } from '../errors.ts';
import { namesOf } from '../job/known-options.ts';
import { checkText, MAX_NAME_BYTES } from '../job/limits.ts';
import type { Outcome } from '../job/outcome.ts';
import { shown } from '../job/shown.ts';
import { type Finish, type Reschedule, transitionFor, verdictOn } from '../job/transition.ts';
import type { Limits } from '../limits/limits.ts';
import type { ClaimedJob } from '../queries/claim-jobs.ts';
import { findHeldJobs } from '../queries/find-held-jobs.ts';
import { finishJobs } from '../queries/finish-jobs.ts';
import { reclaimJob } from '../queries/reclaim-job.ts';
import { rescheduleJobs } from '../queries/reschedule-jobs.ts';
import { transactionId } from '../queries/transaction-id.ts';
import type { Queue } from '../queue/queue.ts';
import type { QueueTables } from '../schema/create-queue-tables.ts';
import type { OwnColumns } from '../schema/own-columns.ts';
import { type Database, type Executor, NO_DATABASE, type Transaction } from '../sql/executor.ts';
import { faultPoint } from '../sql/fault-point.ts';
import { Attempt, type AttemptEnvironment } from './attempt/attempt.ts';
import { executeJob } from './attempt/execute-job.ts';
import type { Handler, TransactionOf } from './attempt/handler.ts';
import { NextClaims } from './claim/next-claims.ts';
import { checkRunOptions, type RunOptions } from './options.ts';

/** Settings of {@link runNext}. */
export interface RunNextOptions<TDb, TOwn extends OwnColumns = OwnColumns> extends RunOptions<TDb, TOwn> {
  /** The queues to look in, in this order. @default every queue that a handler's definition names */
  queues?: readonly string[] | undefined;
}

const OPTIONS = namesOf<RunNextOptions<unknown>>({ queue: true, handlers: true, queues: true });

/** The job that {@link runNext} has run, and how its attempt ended. */
export interface RanJob {
  readonly job: ClaimedJob;
  readonly outcome: 'completed' | 'failed' | 'snoozed' | 'cancelled';
  /** What the handler threw, when the attempt failed. */
  readonly error?: unknown;
}

/**
 * Runs one due job in one transaction, which holds the job's row lock for as long as the handler runs;
 * returns `undefined` when none is due. There is nothing to recover, because a process that dies unlocks the
 * row. For scripts, tests and functions that run now and then; a worker is many times faster.
 *
 * `ctx.db` is that transaction, inside a savepoint: what a handler writes with it commits together with the
 * job's end, and is undone when the attempt fails, while the failure itself is kept.
 *
 * Its costs: the transaction stays open, so vacuum waits for it; and a crash spends no attempt, so a job that
 * kills its process is tried for ever. When `timeoutMs` is over, the whole transaction rolls back, because
 * the handler may still be writing in it.
 *
 * Under concurrency: no other claim sees the job before the transaction ends. A paused queue has no job for
 * it. The job cannot be cancelled from outside, since its row is locked. Queues with limits are refused: only
 * a worker can have slots of them.
 *
 * @throws QueueError for a queue that `limitsIn` names
 */
export async function runNext<TDb extends Database, TOwn extends OwnColumns>(
  db: TDb,
  options: RunNextOptions<TransactionOf<NoInfer<TDb>>, TOwn>,
): Promise<RanJob | undefined> {
  const handlers = checkRunOptions('runNext', options, OPTIONS);
  if (typeof db?.transaction !== 'function') throw new TypeError(`runNext: ${NO_DATABASE}`);
  const queues = options.queues ?? [...new Set(options.handlers.map(({ job }) => job.queue))];
  if (!Array.isArray(queues)) throw new TypeError(`runNext: queues must be an array, got ${shown(queues)}`);
  for (const queue of queues as readonly string[]) {
    checkText('runNext: the name of a queue', queue, MAX_NAME_BYTES);
    // `createQueue` has put it there, or nothing.
    (options.queue.limits as Limits | undefined)?.checkNone('runNext', queue);
    // Drizzle hands over its own transaction type, which is what the handlers were typed for.
    const ran = await runOne(db, options.queue, handlers as unknown as ReadonlyMap<string, Handler>, queue);
    if (ran !== undefined) return ran;
  }
  return undefined;
}

type RunEnvironment = Pick<Queue, 'tables' | 'around'>;

/** Thrown to roll the whole transaction back: the handler that was left behind may still be writing in it. */
class AbandonedAttempt extends Error {
  constructor(
    readonly attempt: Attempt,
    readonly outcome: Outcome,
  ) {
    super('abandoned');
  }
}

class Undo extends Error {
  constructor(readonly outcome: Outcome) {
    super('undo');
  }
}

async function runOne(
  db: Database,
  { tables, around }: RunEnvironment,
  handlers: ReadonlyMap<string, Handler>,
  queue: string,
): Promise<RanJob | undefined> {
  const kinds = [...handlers.keys()];
  try {
    return await db.transaction(async (tx) => {
      const claim = { queue, kinds, workerId: null, fromGoneWorkers: true, heedPauses: true };
      const job = await NextClaims.of(db, tables, queue, kinds).next(tx, tables, claim);
      const handler = job === undefined ? undefined : handlers.get(job.kind);
      if (job === undefined || handler === undefined) return undefined;
      const { attempt, outcome } = await runInSavepoint(tx, { tables, around }, job, handler);
      await faultPoint('runNext: ran');
      if (outcome.type !== 'committed') {
        await write(tx, tables, attempt, transitionFor(outcome, attempt.facts));
      }
      return toRanJob(attempt, outcome);
    });
  } catch (error) {
    if (!(error instanceof AbandonedAttempt)) throw error;
    const { attempt, outcome } = error;
    await faultPoint('runNext: rolled back');
    await writeAnew(db, tables, attempt, outcome);
    return toRanJob(attempt, outcome);
  }
}

async function runInSavepoint(
  tx: Transaction,
  { tables, around }: Pick<AttemptEnvironment, 'tables' | 'around'>,
  job: ClaimedJob,
  handler: Handler,
): Promise<{ attempt: Attempt; outcome: Outcome }> {
  const attemptIn = (savepoint: Transaction): Attempt => {
    // A handler that is left behind still has it after its connection has gone to somebody else.
    const db = transactionUntil(savepoint, () => attempt.overError);
    const checkTransaction = sameAs(tx, tables);
    const attempt: Attempt = new Attempt(job, handler, {
      db,
      tables,
      workerId: null,
      around,
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
      if (attempt.reason !== undefined) throw new AbandonedAttempt(attempt, outcome);
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
  }
  return { attempt, outcome };
}

async function write(
  db: Executor,
  tables: QueueTables,
  { job, holder }: Attempt,
  transition: Finish | Reschedule,
): Promise<void> {
  const { id, fence } = job;
  const written =
    transition.type === 'finish'
      ? await finishJobs(db, tables, holder, [{ id, fence, transition }])
      : await rescheduleJobs(db, tables, holder, [{ id, fence, transition }]);
  if (!written.has(job.id)) throw new LeaseLostError(job.kind, job.id);
}

/** Settles an attempt whose claim was rolled back, unless somebody else has claimed the job since. */
async function writeAnew(
  db: Database,
  tables: QueueTables,
  attempt: Attempt,
  outcome: Outcome,
): Promise<void> {
  await db.transaction(async (tx) => {
    if (!(await reclaimJob(tx, tables, attempt.job))) return;
    await write(tx, tables, attempt, transitionFor(outcome, attempt.facts));
  });
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
