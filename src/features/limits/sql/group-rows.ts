import { type SQL, sql } from 'drizzle-orm';
import { MAX_PRIORITY } from '../../../core/job/limits.ts';
import type { QueueTables } from '../../../core/schema/create-queue-tables.ts';
import type { Value } from '../../../core/sql/kept-statement.ts';
import { throughIndex } from '../../../core/sql/through-index.ts';

/** All priorities, for a `FROM`: the index of groups has the jobs of each one by their time. */
export const BANDS: SQL = sql`generate_series(0, ${sql.raw(String(MAX_PRIORITY))}) as band(priority)`;

/** Whether the job `j` is in this group, for the index of groups. */
export function isOfGroup(queue: Value<string>, group: SQL): SQL {
  return sql`j.queue = ${queue} and j.group_key = ${group} and ${throughIndex(sql`j.group_key is not null`)}`;
}

/** Whether the row `h` of `queue_holds` counts: no worker stands behind it, or one that lives. */
export function isUpheld({ queueWorkers }: QueueTables): SQL {
  return sql`(h.worker_id is null or h.worker_id in (select w.id from ${queueWorkers} as w))`;
}
