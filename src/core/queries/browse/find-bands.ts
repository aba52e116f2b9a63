import { type SQL, sql } from 'drizzle-orm';
import { MAX_PRIORITY } from '../../job/limits.ts';
import type { QueueTables } from '../../schema/create-queue-tables.ts';
import { type Executor, queryRows } from '../../sql/executor.ts';
import { type RunUs, runUs, runUsOf } from '../../sql/job-place.ts';
import { walkIndex } from '../../sql/walk-index.ts';

/** Live jobs that stand together in an index, in the order in which they are due. */
export interface Band {
  readonly queue: string;
  /** `null`: of jobs without a group. */
  readonly group: string | null;
  readonly priority: number;
  /** Its first job: when it is due, and whether it is now; `undefined` where none was looked for. */
  readonly first?: { readonly runUs: RunUs; readonly isDue: boolean } | undefined;
}

export interface BandsToFind {
  /** `undefined`: of every queue. */
  readonly queues: readonly string[] | undefined;
  /** Only of this group. */
  readonly group: string | undefined;
  /** At most this many of jobs without a group, and as many of jobs in groups. */
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
  return rows.map(({ queue, group_key, priority, run_us, is_due }) => ({
    queue: String(queue),
    group: group_key === null ? null : String(group_key),
    priority: Number(priority),
    first: run_us === null ? undefined : { runUs: runUsOf(run_us), isDue: is_due === true },
  }));
}

/** When the first job of a band is due, and whether it is. */
function first(alias: string): SQL {
  return sql`${runUs(alias)} as run_us,
        ${sql.raw(alias)}.run_at <= statement_timestamp() as is_due`;
}

/**
 * Without `priority >= 0`, which always holds, the planner does not use the index.
 *
 * @crossesQueues finds the queues that have jobs
 * @insteadOnCitus browseJobsQuery
 */
export function findBandsQuery(tables: QueueTables, { queues, group, limit }: BandsToFind): SQL {
  const named = JSON.stringify(queues ?? []);
  const inGroups = [
    sql`j.group_key is not null`,
    ...(queues === undefined
      ? []
      : [sql`j.queue in (select jsonb_array_elements_text(${named}::text::jsonb))`]),
    ...(group === undefined ? [] : [sql`j.group_key = ${group}`]),
  ];
  const plain =
    queues === undefined
      ? walkIndex(tables, {
          name: 'plain',
          by: ['priority', 'queue'],
          first: 'run_at',
          where: sql`j.priority >= 0 and j.group_key is null`,
        })
      : sql`plain as (
      select q.queue, p.priority::int2, null::timestamptz as run_at
      from jsonb_array_elements_text(${named}::text::jsonb) as q(queue)
      cross join generate_series(0, ${sql.raw(String(MAX_PRIORITY))}) as p(priority)
    )`;
  return sql`
    with recursive ${plain},
    ${walkIndex(tables, {
      name: 'grouped',
      by: ['queue', 'group_key', 'priority'],
      first: 'run_at',
      where: sql.join(inGroups, sql` and `),
    })}
    (
      select p.queue, null::text as group_key, p.priority, ${first('p')} from plain as p
      where ${group === undefined ? sql`true` : sql`false`} limit ${limit}
    )
    union all
    (
      select g.queue, g.group_key, g.priority, ${first('g')} from grouped as g limit ${limit}
    )`;
}
