import { type SQL, sql } from 'drizzle-orm';
import { CONTROL_ENTRY } from '../sql/control-entry.ts';
import { type Executor, queryRows } from '../sql/executor.ts';
import { type KeyTables, withKeys } from './insert-limited-jobs.ts';
import type { PruneResult } from './prune-results.ts';

/**
 * Deletes up to `limit` keys whose time is over, the oldest first.
 *
 * **Under concurrency.** Passes over a key that an enqueue is just taking again, or another prune deleting,
 * so it waits for nobody. An enqueue that meets a deletion waits for its end, and takes the key anew.
 */
export async function pruneKeys(db: Executor, known: KeyTables, limit: number): Promise<PruneResult> {
  const { tables, keys } = known;
  const query = pruneKeysQuery(known, limit);
  const [row] = await queryRows(db, withKeys(tables, keys), query, { entry: CONTROL_ENTRY });
  return { pruned: Number(row?.pruned), workers: Number(row?.workers) };
}

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
