import type { SQLWrapper } from 'drizzle-orm';
import type { Database, Runner } from '../../../core/sql/executor.ts';
import { transact } from '../../../core/sql/transact.ts';
import { isAboutTheServer } from '../../../core/worker/base/refusal.ts';
import { QueueError } from '../../../errors.ts';
import { endMembers } from '../queries/end-members.ts';
import { endUnclaimed } from '../queries/end-unclaimed.ts';
import { findMembers } from '../queries/find-members.ts';
import { findTallied, MOST_TALLIED } from '../queries/find-tallied.ts';
import { findUnclaimed } from '../queries/find-unclaimed.ts';
import { findUnwoken } from '../queries/find-unwoken.ts';
import { type Fold, type Folded, foldTallies } from '../queries/fold-tallies.ts';
import { withBriefLocks } from '../queries/set-lock-timeout.ts';
import { wakeWaiters } from '../queries/wake-waiters.ts';
import type { TablesOfBatches } from '../sql/batch-tables.ts';
import { CHUNK } from '../sql/chunk.ts';

/** Reports each fold as it is done: where a later one fails, an earlier one has had its effect. */
export interface FoldReport {
  /** Jobs of these queues were made due. */
  readonly onMoved: (queues: Iterable<string>) => void;
  /** What the database says of a member whose row refuses to be asked to end. */
  readonly onRefused: (error: unknown) => void;
}

/** Folds what there is, but not what others end meanwhile: they may end some all the time. */
export async function foldAll(
  db: Runner,
  tables: TablesOfBatches,
  channel: string | undefined,
  locks: Fold['locks'],
  report: FoldReport,
): Promise<void> {
  const busy = new Set<number>();
  let isByBatch = false;
  for (;;) {
    const ids = busy.size === 0 && !isByBatch ? undefined : await findTallied(db, tables, [...busy]);
    const folded = await foldSome(db, tables, { ids, channel, locks }, report);
    const isCut = ids === undefined ? folded.isCut : ids.length >= MOST_TALLIED;
    if (!isCut) return;
    if (folded.tallies === 0 && folded.busy.length === 0) {
      // Tallies of batches that are gone stay until a recount deletes them. They hide others from a cut.
      if (ids !== undefined) return;
      isByBatch = true;
    }
    // Behind their tallies there may be those of others.
    for (const id of folded.busy) busy.add(id);
  }
}

/** Folds once, and asks for the end of the members that are to end. */
async function foldSome(
  db: Runner,
  tables: TablesOfBatches,
  fold: Fold,
  { onMoved, onRefused }: FoldReport,
): Promise<Folded> {
  const folded = await foldTallies(db, tables, fold);
  onMoved(folded.woken);
  const { queues, refusals } = await askAllMembers(db, tables, folded.unwanted, fold.channel);
  onMoved(queues);
  for (const error of refusals) onRefused(error);
  return folded;
}

/**
 * The same in one transaction, or a savepoint of one that has nothing else to do: it waits for no lock longer
 * than `briefly`. Returns whether it has made something due. What is locked, or refuses the change, is left
 * to the next call, and keeps back nothing else.
 *
 * @param ids of these batches alone, as of the one whose member has just ended: all may take long
 */
export async function foldAllIn(
  db: Database,
  tables: TablesOfBatches,
  channel: string | undefined,
  ids?: readonly number[],
): Promise<boolean> {
  // As a rule there is nothing, which one statement says.
  if (ids === undefined && (await findTallied(db, tables)).length === 0) return false;
  return await transact(db, (savepoint) =>
    withBriefLocks(savepoint, tables, async (hurry) => {
      // One that fails takes nothing else with it.
      const each = {
        execute: (query: SQLWrapper) => transact(savepoint, async (one) => await one.execute(query)),
      };
      const leave = (error: unknown) => {
        if (isAboutTheServer(error)) throw error;
      };
      const moved = new Set<string>();
      const report: FoldReport = {
        onMoved: (queues) => {
          for (const queue of queues) moved.add(queue);
        },
        onRefused: leave,
      };
      const fold = async (some: readonly number[]) =>
        (await foldSome(each, tables, { ids: some, channel, locks: 'wait' }, report)).tallies;
      if (ids !== undefined) {
        await inParts(ids, fold, leave);
        return moved.size > 0;
      }
      await foldAll(each, tables, channel, 'wait', report).catch(leave);
      const left = await findTallied(each, tables);
      // Many may be locked, and it does not wait as long for each of them.
      if (left.length > 0) await hurry();
      await inParts(left, fold, leave);
      return moved.size > 0;
    }),
  );
}

/**
 * Asks for the end of the live members of batches; returns the queues of those.
 *
 * @throws what the database says of a row that refuses it, once all others were asked
 */
export async function endAllMembers(
  db: Runner,
  tables: TablesOfBatches,
  batchIds: readonly number[],
  channel: string | undefined,
  signal?: AbortSignal,
): Promise<ReadonlySet<string>> {
  const { queues, refusals } = await askAllMembers(db, tables, batchIds, channel, signal);
  if (refusals.length > 0) throw refusals[0];
  return queues;
}

/** The same; returns also what the database says of rows that refuse it. */
export async function askAllMembers(
  db: Runner,
  tables: TablesOfBatches,
  batchIds: readonly number[],
  channel: string | undefined,
  signal?: AbortSignal,
): Promise<{ readonly queues: ReadonlySet<string>; readonly refusals: readonly unknown[] }> {
  const queues = new Set<string>();
  const refusals: unknown[] = [];
  if (batchIds.length === 0) return { queues, refusals };
  await pageByPage(
    (after) => findMembers(db, tables, batchIds, after),
    async (queue, ids) => {
      const asked = await inParts(
        ids,
        (some) => endMembers(db, tables, { queue, ids: some, channel }),
        (error) => refusals.push(error),
      );
      if (asked > 0) queues.add(queue);
    },
    signal,
  );
  return { queues, refusals };
}

/**
 * Ends jobs that were asked to end with these batches and that no claim has taken, as in a paused queue.
 * Returns the batches of which they were members, and what the database says of rows that refuse it.
 *
 * @param unwanted those of the batches whose members are to end
 */
export async function endUnclaimedJobs(
  db: Runner,
  tables: TablesOfBatches,
  batchIds: readonly number[],
  unwanted: readonly number[],
  signal?: AbortSignal,
): Promise<{ readonly batchIds: ReadonlySet<number>; readonly refusals: readonly unknown[] }> {
  const ended = new Set<number>();
  const refusals: unknown[] = [];
  await pageByPage(
    (after) => findUnclaimed(db, tables, batchIds, unwanted, after),
    async (queue, ids) => {
      await inParts(
        ids,
        async (some) => {
          const { jobs, batchIds } = await endUnclaimed(db, tables, { queue, ids: some });
          for (const id of batchIds) ended.add(id);
          return jobs;
        },
        (error) => refusals.push(error),
      );
    },
    signal,
  );
  return { batchIds: ended, refusals };
}

/**
 * Makes due what waits for these batches although that is over; returns the queues of those, whether some are
 * left (they are locked, or refuse it), and why rows refuse it. See `wakeWaiters`.
 */
export async function wakeAllWaiters(
  db: Runner,
  tables: TablesOfBatches,
  batchIds: readonly number[],
  channel: string | undefined,
  signal?: AbortSignal,
): Promise<{
  readonly queues: ReadonlySet<string>;
  readonly isLeft: boolean;
  readonly refusals: readonly Error[];
}> {
  const queues = new Set<string>();
  let isLeft = false;
  const refusals: Error[] = [];
  await pageByPage(
    (after) => findUnwoken(db, tables, batchIds, after),
    async (queue, ids) => {
      const woken = await inParts(
        ids,
        (some) => wakeWaiters(db, tables, { queue, ids: some, channel }),
        (error, id) => refusals.push(cannotBeMadeDue(queue, id, error)),
      );
      if (woken > 0) queues.add(queue);
      isLeft ||= woken < ids.length;
    },
    signal,
  );
  return { queues, isLeft, refusals };
}

function cannotBeMadeDue(queue: string, id: number, cause: unknown): QueueError {
  const what = `Job ${id} of '${queue}' cannot be made due, though what it waits for has ended`;
  return new QueueError(`${what}: the database refuses to change its row`, { cause });
}

/**
 * Goes once through all jobs that `find` finds, in the order of their ids: what is locked or refuses is left,
 * and keeps back none of those behind it. A stop of the worker waits for one page alone: the next look, of
 * whichever worker, finds the rest.
 */
async function pageByPage(
  find: (after: number) => Promise<ReadonlyMap<string, readonly number[]>>,
  visit: (queue: string, ids: readonly number[]) => Promise<void>,
  signal: AbortSignal | undefined,
): Promise<void> {
  for (let after = 0; ; ) {
    const found = await find(after);
    for (const [queue, ids] of found) await visit(queue, ids);
    const ids = [...found.values()].flat();
    if (ids.length < CHUNK || signal?.aborted) return;
    after = Math.max(...ids);
  }
}

/** As many tries as this cost about as much as one wait for a locked row. */
const PARTS = 32;

/**
 * Changes jobs, or folds batches, by one statement. Where a row is locked or refuses the change, each part of
 * them is changed by itself, down to that one: the others must not wait for it. Returns how many rows it has
 * changed.
 */
export async function inParts(
  ids: readonly number[],
  change: (some: readonly number[]) => Promise<number>,
  onRefused: (error: unknown, id: number) => unknown,
): Promise<number> {
  const [id] = ids;
  if (id === undefined) return 0;
  try {
    return await change(ids);
  } catch (error) {
    if (isAboutTheServer(error)) throw error;
    let changed = 0;
    if (ids.length === 1) await onRefused(error, id);
    else {
      const size = Math.ceil(ids.length / PARTS);
      for (let at = 0; at < ids.length; at += size) {
        changed += await inParts(ids.slice(at, at + size), change, onRefused);
      }
    }
    return changed;
  }
}
