import { type SQL, sql } from 'drizzle-orm';
import type { QueueTables } from '../../../core/schema/index.ts';
import type { Executor } from '../../../index.ts';
import { arrayText, groupsIn, notedGroups, queryRows } from '../../../internal.ts';

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
 * Lets imported jobs of one queue run once the other system no longer has them: they become due at the time
 * they had there, get the unique key they had there, and lose their mark. Returns the ids of those that had
 * the mark. A key that a live job has by now, or that comes twice, is left out: it must not stop a job from
 * running.
 *
 * **Under concurrency.** A job is released once, however many importers try: the same update removes the
 * mark, after it has waited for a lock and read the row again. Until then no worker sees the job as due. If
 * another transaction enqueues the key at the same time, this fails with a unique violation and can be called
 * again. In a queue with groups it also notes which groups claims should look at; that waits for no other
 * transaction.
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
  const mark = sql`(j.metadata -> ${IMPORT_MARK}::text)`;
  const ctes = sql`
    with marked as materialized (
      select j.id, j.kind, ${mark} ->> 'uniqueKey' as unique_key
      from ${queueJobs} as j
      where j.queue = ${queue} and j.id = any(array(select unnest(${arrayText(ids)}::text::int8[])))
        and ${mark} is not null
      order by j.id for no key update
    ),
    taken as materialized (
      select j.kind, j.unique_key from ${queueJobs} as j
      where j.queue = ${queue} and j.kind = any(array(select distinct kind from marked))
        and j.unique_key = any(array(select unique_key from marked))
    ),
    keyed as materialized (
      select m.id from (
        select m.*, row_number() over (partition by m.kind, m.unique_key order by m.id) as place
        from marked as m
      ) as m
      where m.place = 1
        and ((m.kind, m.unique_key) in (select t.kind, t.unique_key from taken as t)) is not true
    )`;
  const update = sql`
    update ${queueJobs} as j
    set run_at = to_timestamp((${mark} ->> 'runAtMs')::float8 / 1000),
      metadata = j.metadata - ${IMPORT_MARK}::text,
      unique_key = case when (j.id in (select id from keyed)) is true then ${mark} ->> 'uniqueKey' end
    where j.queue = ${queue} and j.id = any(array(select id from marked))
    returning j.id`;
  if (groupsIn(tables, queue) === undefined) return sql`${ctes}${update}`;
  return sql`${ctes},
    released as (${update}, j.queue, j.group_key, j.run_at
    )${notedGroups(tables, 'released')}
    select id from released`;
}
