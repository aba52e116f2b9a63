import { type SQL, sql } from 'drizzle-orm';
import { isFree } from '../../../core/sql/is-free.ts';
import { throughIndex } from '../../../core/sql/through-index.ts';
import { BANDS } from './group-rows.ts';
import type { GroupTables } from './limit-tables.ts';

/** The most jobs that one statement takes in. */
export const MAX_ADOPTED = 1_000;

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
