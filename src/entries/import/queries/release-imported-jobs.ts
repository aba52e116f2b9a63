import { type SQL, sql } from 'drizzle-orm';
import type { QueueTables } from '../../../core/schema/create-queue-tables.ts';
import { type Executor, queryRows } from '../../../core/sql/executor.ts';
import { arrayText } from '../../../core/sql/fence.ts';
import { notedGroups } from '../../../features/limits/sql/grouped-jobs.ts';
import { groupingOf } from '../../../features/limits/sql/grouping.ts';

/** In the metadata of a job that another system may still have: whose job it is, and what it is to become. */
export const IMPORT_MARK = 'drizzle-queue:import';

export interface ImportMark {
  /** The system and the queue there. */
  readonly source: string;
  readonly id: string;
  readonly runAtMs: number;
  readonly uniqueKey: string | null;
}

export interface ReleaseImported {
  readonly queue: string;
  readonly ids: readonly number[];
}

/**
 * Lets jobs of one queue run that were imported and are nowhere else any more: they become due when they were
 * there, get the unique key that they had there, and lose their mark. Returns the ids of those that had it. A
 * key that a live job has by now, or that comes twice, is left out: it must not keep a job from running.
 *
 * **Under concurrency.** A job is released once, whoever does it: the mark goes with the same update, which
 * waits for a lock and then reads the row anew. Until then no worker sees a job that is due. Another enqueue
 * of the key at the same time is a unique violation, after which it can be called again. In a queue with
 * groups it also notes for the claims which groups to look at, which waits for nobody.
 *
 * The kinds beside the keys make the look for a taken key one in the unique index. Without them Postgres 15
 * read all jobs for each batch: 3 s with 500,000 jobs, where this takes 2 ms.
 */
export async function releaseImportedJobs(
  db: Executor,
  tables: QueueTables,
  release: ReleaseImported,
): Promise<number[]> {
  const rows = await queryRows(db, tables, releaseImportedJobsQuery(tables, release));
  return rows.map(({ id }) => Number(id));
}

export function releaseImportedJobsQuery(tables: QueueTables, { queue, ids }: ReleaseImported): SQL {
  const { queueJobs } = tables;
  const ctes = sql`
    with marked as materialized (
      select j.id, j.kind, j.metadata - ${IMPORT_MARK}::text as metadata,
        to_timestamp((j.metadata -> ${IMPORT_MARK}::text ->> 'runAtMs')::float8 / 1000) as run_at,
        j.metadata -> ${IMPORT_MARK}::text ->> 'uniqueKey' as unique_key
      from ${queueJobs} as j
      where j.queue = ${queue} and j.id = any(array(select unnest(${arrayText(ids)}::text::int8[])))
        and j.metadata -> ${IMPORT_MARK}::text is not null
      order by j.id for no key update
    ),
    taken as materialized (
      select j.kind, j.unique_key from ${queueJobs} as j
      where j.queue = ${queue} and j.kind = any(array(select distinct kind from marked))
        and j.unique_key = any(array(select unique_key from marked))
    ),
    i as materialized (
      select m.id, m.metadata, m.run_at, case when t.kind is null
          and row_number() over (partition by m.kind, m.unique_key order by m.id) = 1 then m.unique_key end
        as unique_key
      from marked as m left join taken as t on t.kind = m.kind and t.unique_key = m.unique_key
    )`;
  const update = sql`
    update ${queueJobs} as j
    set run_at = i.run_at, unique_key = i.unique_key, metadata = i.metadata
    from i
    where j.queue = ${queue} and j.id = any(array(select id from i)) and i.id = j.id
    returning j.id`;
  if (groupingOf(tables, queue) === undefined) return sql`${ctes}${update}`;
  return sql`${ctes},
    released as (${update}, j.queue, j.group_key, j.run_at
    )${notedGroups(tables, 'released')}
    select id from released`;
}
