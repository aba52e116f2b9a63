import { type SQL, sql } from 'drizzle-orm';
import type { QueueTables } from '../schema/create-queue-tables.ts';
import { queryRows, type Runner } from '../sql/executor.ts';
import { arrayText } from '../sql/fence.ts';
import { notified } from '../sql/wake-up.ts';

export interface Unpark {
  readonly queue: string;
  readonly ids: readonly number[];
  /** Where the queue's workers are notified; `undefined`: nobody is. */
  readonly channel: string | undefined;
}

/**
 * Ends the waiting of jobs of one queue: they are due when the transaction commits in which what they waited
 * for has ended. Returns the ids of those that are live. A wake-up is a hint: a job that had not waited, or
 * waits for something else as well, runs earlier than it would have, and parks again.
 *
 * **Under concurrency.** Waits for whoever is just changing a row (a claim or a settlement; `runNext` for as
 * long as it runs the job), and locks the rows in the order of their ids, so that two of these never
 * deadlock. The `set` asks the row as it is after the wait whether the job is held; a `where` would ask the
 * version from before. A job that is held and about to park finds its `run_at` after its claim, and does not
 * park. A cancel that came first has ended the job, and its id is not returned.
 */
export async function unparkJobs(db: Runner, tables: QueueTables, unpark: Unpark): Promise<Set<number>> {
  const rows = await queryRows(db, tables, unparkJobsQuery(tables, unpark));
  return new Set(rows.map(({ id }) => Number(id)));
}

export function unparkJobsQuery({ queueJobs }: QueueTables, { queue, ids, channel }: Unpark): SQL {
  return sql`
    with now as materialized (select statement_timestamp() as at),
    live as materialized (
      select j.id from ${queueJobs} as j
      where j.queue = ${queue} and j.id = any(array(select unnest(${arrayText(ids)}::text::int8[])))
      order by j.id for no key update
    ),
    unparked as (
      update ${queueJobs} as j
      set run_at = case when j.worker_id is null then least(j.run_at, now.at)
        else greatest(now.at, j.claimed_at + interval '1 microsecond') end
      from now
      where j.queue = ${queue} and j.id = any(array(select id from live))
      returning j.id
    )
    select u.id, ${channel === undefined ? sql`false` : notified(channel, sql`${queue}::text`)} as woke
    from unparked as u`;
}
