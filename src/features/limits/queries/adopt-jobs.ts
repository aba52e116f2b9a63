import { type SQL, sql } from 'drizzle-orm';
import { NO_GROUP } from '../../../core/job/group.ts';
import type { Runner } from '../../../core/sql/executor.ts';
import { arrayText } from '../../../core/sql/fence.ts';
import { isFree } from '../../../core/sql/is-free.ts';
import { throughIndex } from '../../../core/sql/through-index.ts';
import { BANDS } from '../sql/group-rows.ts';
import { type GroupTables, queryLimitRows } from '../sql/limit-tables.ts';

/** The most jobs that one statement takes in. */
export const MAX_ADOPTED = 1_000;

/**
 * Puts the jobs of a queue with groups that are in none into the group `-`: they were enqueued before the
 * queue had groups, or by a process that does not know of them. No claim of groups would see them, and no
 * sweep those that a worker without groups held when it died. Returns how many.
 *
 * **Under concurrency.** It leaves what another statement has locked, such as a claim of a worker that does
 * not know of the groups either, and the jobs that a living worker holds. A worker that is wrongly taken for
 * gone keeps its hold: worker and fence stay. Any number of workers may do it at once.
 *
 * @param ids only these. @default the first ones in no group
 */
export async function adoptJobs(
  db: Runner,
  tables: GroupTables,
  queue: string,
  ids?: readonly number[],
): Promise<number> {
  const [row] = await queryLimitRows(db, tables, adoptJobsQuery(tables, queue, ids));
  return Number(row?.adopted);
}

export function adoptJobsQuery(tables: GroupTables, queue: string, ids?: readonly number[]): SQL {
  const { queueJobs, queueNotes } = tables;
  const lock = sql`
        for no key update skip locked`;
  const plain =
    ids === undefined
      ? plainJobs(tables, queue, lock)
      : sql`
      select j.id from ${queueJobs} as j
      where j.queue = ${queue} and j.id = any(${arrayText(ids)}::text::int8[]) and j.group_key is null
        and ${isFree(tables)}${lock}`;
  return sql`
    with plain as materialized (${plain}
    ),
    adopted as (
      update ${queueJobs} as j set group_key = ${NO_GROUP}
      where j.queue = ${queue} and j.id = any(array(select id from plain))
      returning j.run_at
    ),
    noted as (
      insert into ${queueNotes} (queue, due_at, group_keys)
      select distinct ${queue}::text, a.run_at, array[${NO_GROUP}::text] from adopted as a
      where a.run_at < 'infinity'
    )
    select count(*)::float8 as adopted from adopted`;
}

/** The ids of the first jobs of a queue that may be taken into the group `-`. */
export function plainJobs(tables: GroupTables, queue: string, lock: SQL): SQL {
  return sql`
      select j.id from ${BANDS}
      cross join lateral (
        select j.id from ${tables.queueJobs} as j
        where j.queue = ${queue} and j.priority = band.priority::int2
          and ${throughIndex(sql`j.group_key is null`)}
          and ${isFree(tables)}
        order by j.run_at, j.id limit (select ${MAX_ADOPTED}::int8)${lock}
      ) as j
      limit (select ${MAX_ADOPTED}::int8)`;
}
