import { type SQL, sql } from 'drizzle-orm';
import { countWorkersQuery, type PruneResult } from '../../../core/queries/operate/prune-queue.ts';
import { queryRows, type Runner } from '../../../core/sql/executor.ts';
import { isDistributed } from '../../../core/sql/statement-context.ts';
import { CONTROL_ENTRY } from '../../control/control-entry.ts';
import { type KeyTables, withKeys } from './insert-limited-jobs.ts';

/**
 * Deletes up to `limit` expired keys, the oldest first. On Citus it deletes up to `limit` for each queue that
 * has such keys, one statement per queue, since a statement locks rows of one shard at a time.
 *
 * **Under concurrency.** Skips a key that an enqueue is just taking again or that another prune is deleting,
 * so it waits for no other transaction. An enqueue that meets a deletion waits until it ends, and then takes
 * the key again.
 */
export async function pruneKeys(db: Runner, known: KeyTables, limit: number): Promise<PruneResult> {
  const { tables, keys } = known;
  if (isDistributed(tables)) return await pruneKeysByQueue(db, known, limit);
  const query = pruneKeysQuery(known, limit);
  const [row] = await queryRows(db, withKeys(tables, keys), query, { entry: CONTROL_ENTRY });
  return { pruned: Number(row?.pruned), workers: Number(row?.workers) };
}

/** @insteadOnCitus pruneKeysOfQuery */
export function pruneKeysQuery({ tables, keys }: KeyTables, limit: number): SQL {
  return sql`
    with over as (
      select k.queue, k.kind, k.key from ${keys} as k
      where k.until <= statement_timestamp()
      order by k.until limit ${limit}
      for update skip locked
    ),
    pruned as (
      delete from ${keys} as k
      where (k.queue, k.kind, k.key) in (select queue, kind, key from over)
      returning 1
    )
    select count(*)::float8 as pruned,
      (select count(*) from ${tables.queueWorkers})::float8 as workers from pruned`;
}

/** **Under concurrency.** As {@link pruneKeys}, in each of the queues. */
async function pruneKeysByQueue(db: Runner, known: KeyTables, limit: number): Promise<PruneResult> {
  const tables = withKeys(known.tables, known.keys);
  const entry = { entry: CONTROL_ENTRY };
  let pruned = 0;
  for (const { queue } of await queryRows(db, tables, findOverKeysQuery(known), entry)) {
    pruned += (await queryRows(db, tables, pruneKeysOfQuery(known, String(queue), limit), entry)).length;
  }
  const [row] = await queryRows(db, tables, countWorkersQuery(known.tables));
  return { pruned, workers: Number(row?.workers) };
}

/** The queues that have keys whose time is over. */
export function findOverKeysQuery({ keys }: KeyTables): SQL {
  return sql`select k.queue from ${keys} as k where k.until <= statement_timestamp() group by k.queue`;
}

/** {@link pruneKeysQuery} for one queue. */
export function pruneKeysOfQuery({ keys }: KeyTables, queue: string, limit: number): SQL {
  return sql`
    with over as (
      select k.kind, k.key from ${keys} as k
      where k.queue = ${queue} and k.until <= statement_timestamp()
      order by k.until limit ${limit}
      for update skip locked
    )
    delete from ${keys} as k
    where k.queue = ${queue} and (k.kind, k.key) in (select kind, key from over)
    returning k.key`;
}
