import { namesOf } from '../job/known-options.ts';
import { checkId, checkText, MAX_NAME_BYTES } from '../job/limits.ts';
import { shown } from '../job/shown.ts';
import { type Claim, type ClaimedJob, claimJobs } from '../queries/claim/claim-jobs.ts';
import type { OwnColumns } from '../schema/own-columns.ts';
import { checkExecutor, type Database, NO_DATABASE, type Transaction } from '../sql/executor.ts';
import { NextClaims } from './claim/next-claims.ts';
import { checkRunOptions, type RunOptions } from './options.ts';
import type { Handler, TransactionOf } from './run/handler.ts';
import { type RanJob, type RunEnvironment, runInTransaction } from './run-in-transaction.ts';

/** Settings of {@link runNext}. */
export interface RunNextOptions<TDb, TOwn extends OwnColumns = OwnColumns> extends RunOptions<TDb, TOwn> {
  /** The queues to look in, in this order. @default every queue that a handler's definition names */
  queues?: readonly string[] | undefined;
  /**
   * Only the job of this id, if it is due and in one of the queues. Under concurrency: of any number of calls
   * with one id, and workers, one runs it; the others return `undefined` at once. @default any job
   */
  id?: number | undefined;
}

const OPTIONS = namesOf<RunNextOptions<unknown>>({
  queue: true,
  handlers: true,
  queues: true,
  id: true,
});

export type { RanJob } from './run-in-transaction.ts';

import type { ContextFeature } from './context-feature.ts';
import type { LimitingFeature } from './limiting-feature.ts';

/**
 * Runs one due job in one transaction, which holds the job's row lock for as long as the handler runs;
 * returns `undefined` when none is due. There is nothing to recover, because a process that dies unlocks the
 * row. For scripts, tests and functions that run now and then; a worker is many times faster.
 *
 * `ctx.db` is that transaction, inside a savepoint: what a handler writes with it commits together with the
 * job's end, and is undone when the attempt fails, while the failure itself is kept. An end that the database
 * refuses, as at a commit for a deferred constraint, is a failed attempt as well.
 *
 * Its costs: the transaction stays open, so vacuum waits for it; and a crash spends no attempt, so a job that
 * kills its process is tried for ever. When `timeoutMs` is over, the whole transaction rolls back, because
 * the handler may still be writing in it.
 *
 * Under concurrency: no other claim sees the job before the transaction ends. A paused queue has no job for
 * it. The job cannot be cancelled from outside, since its row is locked. A handler that cancels it ends it as
 * cancelled, with what it has written. Queues with limits are refused: only a worker can have slots of them.
 * With a single client in place of a connection pool, nothing else may use that client meanwhile: it would
 * write into this transaction.
 *
 * @throws QueueError for a queue that `limitsIn` names
 */
export async function runNext<TDb extends Database, TOwn extends OwnColumns>(
  db: TDb,
  options: RunNextOptions<TransactionOf<NoInfer<TDb>>, TOwn>,
): Promise<RanJob | undefined> {
  checkExecutor('runNext', db);
  const handlers = checkRunOptions('runNext', options, OPTIONS);
  if (typeof db.transaction !== 'function') throw new TypeError(`runNext: ${NO_DATABASE}`);
  const queues = options.queues ?? [...new Set(options.handlers.map(({ job }) => job.queue))];
  if (!Array.isArray(queues)) throw new TypeError(`runNext: queues must be an array, got ${shown(queues)}`);
  const { id } = options;
  if (id !== undefined) checkId('runNext', id);
  for (const queue of queues as readonly string[]) {
    checkText('runNext: the name of a queue', queue, MAX_NAME_BYTES);
    // `createQueue` has put it there, or nothing.
    (options.queue.limits as LimitingFeature | undefined)?.checkRunNext(queue);
  }
  // Drizzle hands over its own transaction type, which is what the handlers were typed for.
  const byKind = handlers as unknown as ReadonlyMap<string, Handler>;
  const run = (isCounted: boolean) => runNextIn(db, options.queue, byKind, { queues, id, isCounted });
  // As above.
  const workflows = options.queue.workflows as ContextFeature | undefined;
  if (workflows === undefined) return await run(true);
  const ran = await run(false).catch(async (error: unknown) => {
    if (!(error instanceof WaitsStill)) throw error;
    await workflows.moveOnIn(db);
    return await run(true);
  });
  if (ran === undefined) return (await workflows.moveOnIn(db)) ? await run(true) : undefined;
  // While a job that waits was running, no other call could make it due.
  const batchIds = ran.outcome === 'waiting' ? undefined : [ran.job.batchId].filter((id) => id !== undefined);
  // Otherwise what waits would come after all that is due. The job has run, even if this fails.
  if (batchIds?.length !== 0) await workflows.moveOnIn(db, batchIds).catch(() => undefined);
  return ran;
}

/** Thrown to roll a claim back. */
class WaitsStill extends Error {
  constructor() {
    super('what the job waits for may have ended');
  }
}

interface Wanted {
  readonly queues: readonly string[];
  readonly id: number | undefined;
  /** Whether all ends are counted: a job that is due by its time may wait for one that is not. */
  readonly isCounted: boolean;
}

/** @throws WaitsStill for a job that waits for others, if ends are left to count */
async function runNextIn(
  db: Database,
  queue: RunEnvironment,
  handlers: ReadonlyMap<string, Handler>,
  { queues, id, isCounted }: Wanted,
): Promise<RanJob | undefined> {
  const kinds = [...handlers.keys()];
  const run: Run = (claim) =>
    runInTransaction(db, queue, handlers, async (tx) => {
      const job = await claim(tx);
      if (!isCounted && (job?.blockers ?? 0) !== 0) throw new WaitsStill();
      return job;
    });
  for (const name of queues) {
    const claim = { queue: name, kinds, workerId: null, fromGoneWorkers: true, heedPauses: true };
    const ran =
      id === undefined
        ? await runNextOf(db, queue, run, claim)
        : await run(async (tx) => {
            const named = { ...claim, ids: [id], bands: [], limit: 1 };
            const [job] = await claimJobs(tx, queue.tables, named);
            return job;
          });
    if (ran !== undefined) return ran;
  }
  return undefined;
}

/** Runs the job that a claim brings. */
type Run = (claim: (tx: Transaction) => Promise<ClaimedJob | undefined>) => Promise<RanJob | undefined>;

/** The next job whose claim the database accepts: a refused one has ended its transaction. */
async function runNextOf(
  db: Database,
  { tables }: RunEnvironment,
  run: Run,
  claim: Omit<Claim, 'bands' | 'limit'>,
): Promise<RanJob | undefined> {
  const claims = NextClaims.of(db, tables, claim.queue, claim.kinds);
  await claims.prepare();
  for (;;) {
    let refusal: unknown;
    try {
      return await run((tx) =>
        claims.next(tx, tables, claim).catch((error: unknown) => {
          refusal = error;
          throw error;
        }),
      );
    } catch (error) {
      if (refusal === undefined || !(await claims.overcome(refusal, db, tables, claim))) throw error;
    }
  }
}
