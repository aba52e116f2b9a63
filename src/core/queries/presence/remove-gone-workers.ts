import { type SQL, sql } from 'drizzle-orm';
import type { QueueTables } from '../../schema/create-queue-tables.ts';
import { queryRows, type RawRow, type Runner } from '../../sql/executor.ts';
import { jsonRows } from '../../sql/json-rows.ts';
import { isDistributed } from '../../sql/statement-context.ts';
import { type GoneLimits, seenText, testedLock, whyGone } from '../../sql/why-gone.ts';
import type { GoneWorker } from './check-workers.ts';
import { findWorkers, type KnownWorker, knownWorkers } from './find-workers.ts';

export interface RemovedWorker {
  readonly id: number;
  readonly name: string;
}

/**
 * Declares workers gone that a check has seen so; returns those that it has removed. Their jobs are due again
 * for the next sweep.
 *
 * **Under concurrency.** It looks again: a worker that has shown itself since the check, or has its session
 * back, stays. A row that is being beaten at this moment is locked, and skipped: its worker is alive. Two
 * peers remove one worker once. While it runs, the worker cannot take its session lock; when it can again,
 * its row is gone and its next beat says so.
 */
export async function removeGoneWorkers(
  runner: Runner,
  tables: QueueTables,
  workers: readonly Pick<GoneWorker, 'id' | 'seen'>[],
  limits: GoneLimits,
): Promise<RemovedWorker[]> {
  if (isDistributed(tables)) return await removeApart(runner, tables, workers, limits);
  const rows = await queryRows(runner, tables, removeGoneWorkersQuery(tables, workers, limits));
  return rows.map(toRemoved);
}

/**
 * On Citus the locks are tested apart from the rows, as in `checkWorkers`. A worker that gets its session
 * back between that test and the delete has not shown itself yet, and is declared gone: its next beat tells
 * it so, and whatever it still writes is fenced.
 */
async function removeApart(
  runner: Runner,
  tables: QueueTables,
  workers: readonly Pick<GoneWorker, 'id' | 'seen'>[],
  limits: GoneLimits,
): Promise<RemovedWorker[]> {
  const seen = new Map(workers.map((worker) => [worker.id, worker.seen]));
  const unchanged = (await findWorkers(runner, tables)).filter((row) => seen.get(row.id) === row.seen);
  const tested = await queryRows(runner, tables, testWorkersQuery(tables, unchanged, limits));
  const removed: RemovedWorker[] = [];
  for (const { id, why } of tested) {
    const seenAt = seen.get(Number(id));
    if (why === null || seenAt === undefined) continue;
    const rows = await queryRows(runner, tables, removeUnseenWorkerQuery(tables, Number(id), seenAt));
    removed.push(...rows.map(toRemoved));
  }
  return removed;
}

function toRemoved({ id, name }: RawRow): RemovedWorker {
  return { id: Number(id), name: String(name) };
}

/** @insteadOnCitus removeUnseenWorkerQuery */
export function removeGoneWorkersQuery(
  tables: QueueTables,
  workers: readonly Pick<GoneWorker, 'id' | 'seen'>[],
  limits: GoneLimits,
): SQL {
  const { queueWorkers } = tables;
  const seen = workers.map(({ id, seen }) => JSON.stringify({ id, seen }));
  return sql`
    with unchanged as materialized (
      select w.id, w.session, w.node, w.seen_at from ${queueWorkers} as w
      where (w.id, ${seenText}) in (select i.id, i.seen from ${jsonRows(seen, 'id int8, seen text')} as i)
      for update skip locked
    ),
    gone as materialized (
      select w.id, ${whyGone(limits)} as why from unchanged as w cross join lateral ${testedLock(tables)} as l
    )
    delete from ${queueWorkers} as w
    where w.id = any(array(select g.id from gone as g where g.why is not null))
    returning w.id, w.name`;
}

export function testWorkersQuery(
  tables: QueueTables,
  workers: readonly KnownWorker[],
  limits: GoneLimits,
): SQL {
  return sql`
    select w.id, ${whyGone(limits)} as why
    from ${knownWorkers(workers)} as w cross join lateral ${testedLock(tables)} as l`;
}

/** Removes a worker that has not shown itself since `seen`. */
export function removeUnseenWorkerQuery({ queueWorkers }: QueueTables, id: number, seen: string): SQL {
  return sql`
    delete from ${queueWorkers} as w where w.id = ${id} and w.seen_at = to_timestamp(${seen}::text::float8)
    returning w.id, w.name`;
}
