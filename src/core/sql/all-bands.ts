import { type SQL, sql } from 'drizzle-orm';
import type { QueueTables } from '../schema/create-queue-tables.ts';
import type { RawRow } from './executor.ts';

/**
 * Begins a recursive statement with two lists, each found by an index that leads from one entry to the next:
 * `band`, each priority and queue with jobs outside of groups, and `grouped`, each queue with jobs in groups.
 * Without `priority >= 0` and the like, which always hold, the planner does not use the indexes.
 */
export function allBands({ queueJobs }: QueueTables): SQL {
  return sql`with recursive band as (
      (
        select j.priority, j.queue from ${queueJobs} as j
        where j.priority >= 0 and j.group_key is null
        order by j.priority, j.queue limit 1
      )
      union all
      select n.priority, n.queue from band as b cross join lateral (
        select j.priority, j.queue from ${queueJobs} as j
        where j.priority >= 0 and j.group_key is null and (j.priority, j.queue) > (b.priority, b.queue)
        order by j.priority, j.queue limit 1
      ) as n
    ),
    grouped as (
      (
        select j.queue from ${queueJobs} as j where j.group_key is not null order by j.queue limit 1
      )
      union all
      select n.queue from grouped as g cross join lateral (
        select j.queue from ${queueJobs} as j
        where j.group_key is not null and j.queue > g.queue order by j.queue limit 1
      ) as n
    )`;
}

/** Whether lists that were cut at `limit` had fewer entries. Each row names its `list`, and is one entry. */
export function areWhole(rows: readonly RawRow[], limit: number): boolean {
  const entries = new Map<unknown, number>();
  for (const { list } of rows) entries.set(list, (entries.get(list) ?? 0) + 1);
  return [...entries.values()].every((length) => length < limit);
}
