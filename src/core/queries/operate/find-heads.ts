import { type SQL, sql } from 'drizzle-orm';
import type { QueueTables } from '../../schema/create-queue-tables.ts';
import { allBands, areWhole } from '../../sql/all-bands.ts';
import { msBetween, msOf } from '../../sql/epoch-ms.ts';
import { queryRows, type Runner } from '../../sql/executor.ts';
import { throughIndex } from '../../sql/through-index.ts';
import { walkIndex } from '../../sql/walk-index.ts';

/** The job at the head of one priority of one queue, or of one group in it. */
export interface Head {
  readonly queue: string;
  /** The kind of the due job that has waited longest; `undefined` when none is due. */
  readonly kind: string | undefined;
  readonly dueMs: number;
}

export interface Heads {
  readonly heads: readonly Head[];
  /** Whether these are all. */
  readonly areAll: boolean;
}

/**
 * Of each priority of each queue with live jobs, and of each of its groups, the job that has been due for
 * longest. At most `limit` of them, as many of groups, and as many queues with groups.
 *
 * **Under concurrency.** A plain read of one snapshot. It goes from queue to queue in the indexes of the
 * claims, and reads a row or two of each; under an old snapshot it walks over the dead ones.
 */
export async function findHeads(db: Runner, tables: QueueTables, limit: number): Promise<Heads> {
  const rows = await queryRows(db, tables, findHeadsQuery(tables, limit));
  const heads = rows.map((row) => ({
    queue: String(row.queue),
    kind: row.kind === null ? undefined : String(row.kind),
    dueMs: msOf(row.due_ms ?? 0),
  }));
  return { heads, areAll: areWhole(rows, limit) };
}

/**
 * @crossesQueues finds the queues, by an index that leads from one to the next
 * @insteadOnCitus countJobsQuery
 */
export function findHeadsQuery(tables: QueueTables, limit: number): SQL {
  const { queueJobs } = tables;
  return sql`
    ${allBands(tables)},
    ${walkIndex(tables, {
      name: 'part',
      by: ['queue', 'group_key', 'priority'],
      where: sql`j.group_key is not null`,
    })}
    (
      select 1 as list, b.queue, h.kind,
        ${msBetween('h.run_at', 'statement_timestamp()')} as due_ms
      from (select * from band limit ${limit}) as b
      left join lateral (
        select j.kind, j.run_at from ${queueJobs} as j
        where j.priority = b.priority and j.queue = b.queue
          and ${throughIndex(sql`j.group_key is null`)}
          and j.run_at <= statement_timestamp() and j.worker_id is null
        order by j.run_at, j.id limit 1
      ) as h on true
    )
    union all
    (
      select 2, p.queue, h.kind,
        ${msBetween('h.run_at', 'statement_timestamp()')} as due_ms
      from (select * from part limit ${limit}) as p
      left join lateral (
        select j.kind, j.run_at from ${queueJobs} as j
        where j.queue = p.queue and j.group_key = p.group_key and j.priority = p.priority
          and ${throughIndex(sql`j.group_key is not null`)}
          and j.run_at <= statement_timestamp() and j.worker_id is null
        order by j.run_at, j.id limit 1
      ) as h on true
    )
    union all
    (
      select 3, g.queue, null, null from grouped as g limit ${limit}
    )`;
}
