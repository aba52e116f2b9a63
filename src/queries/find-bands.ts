import { type SQL, sql } from 'drizzle-orm';
import { MAX_PRIORITY } from '../job/limits.ts';
import type { QueueTables } from '../schema/create-queue-tables.ts';
import { type Executor, queryRows } from '../sql/executor.ts';

/** Live jobs that stand together in an index, in the order in which they are due. */
export interface Band {
  readonly queue: string;
  /** `null`: of jobs without a group. */
  readonly group: string | null;
  readonly priority: number;
}

export interface BandsToFind {
  /** `undefined`: of every queue. */
  readonly queues: readonly string[] | undefined;
  /** Only of this group. */
  readonly group: string | undefined;
  /** At most so many of jobs without a group, and so many of jobs in groups. */
  readonly limit: number;
}

/**
 * The bands that the indexes of the claims consist of. Of named queues it returns every priority, whether it
 * has jobs or not.
 *
 * **Under concurrency.** A plain read of one snapshot. It goes from band to band in the indexes, so it costs
 * nothing how many jobs a band has.
 */
export async function findBands(db: Executor, tables: QueueTables, bands: BandsToFind): Promise<Band[]> {
  const rows = await queryRows(db, tables, findBandsQuery(tables, bands));
  return rows.map(({ queue, group_key, priority }) => ({
    queue: String(queue),
    group: group_key === null ? null : String(group_key),
    priority: Number(priority),
  }));
}

/** Without `priority >= 0`, which always holds, the planner does not use the index. */
export function findBandsQuery({ queueJobs }: QueueTables, { queues, group, limit }: BandsToFind): SQL {
  const named = JSON.stringify(queues ?? []);
  const ofQueues =
    queues === undefined
      ? sql``
      : sql` and j.queue in (select jsonb_array_elements_text(${named}::text::jsonb))`;
  const ofGroup = group === undefined ? sql`` : sql` and j.group_key = ${group}`;
  const plain =
    queues === undefined
      ? sql`
      (
        select j.queue, j.priority from ${queueJobs} as j
        where j.priority >= 0 and j.group_key is null
        order by j.priority, j.queue limit 1
      )
      union all
      select n.queue, n.priority from plain as b cross join lateral (
        select j.queue, j.priority from ${queueJobs} as j
        where j.priority >= 0 and j.group_key is null and (j.priority, j.queue) > (b.priority, b.queue)
        order by j.priority, j.queue limit 1
      ) as n`
      : sql`
      select q.queue, p.priority::int2
      from jsonb_array_elements_text(${named}::text::jsonb) as q(queue)
      cross join generate_series(0, ${sql.raw(String(MAX_PRIORITY))}) as p(priority)`;
  return sql`
    with recursive plain as (${plain}
    ),
    grouped as (
      (
        select j.queue, j.group_key, j.priority from ${queueJobs} as j
        where j.group_key is not null${ofQueues}${ofGroup}
        order by j.queue, j.group_key, j.priority limit 1
      )
      union all
      select n.queue, n.group_key, n.priority from grouped as b cross join lateral (
        select j.queue, j.group_key, j.priority from ${queueJobs} as j
        where j.group_key is not null
          and (j.queue, j.group_key, j.priority) > (b.queue, b.group_key, b.priority)${ofQueues}${ofGroup}
        order by j.queue, j.group_key, j.priority limit 1
      ) as n
    )
    (
      select p.queue, null::text as group_key, p.priority from plain as p
      where ${group === undefined ? sql`true` : sql`false`} limit ${limit}
    )
    union all
    (
      select g.queue, g.group_key, g.priority from grouped as g limit ${limit}
    )`;
}
