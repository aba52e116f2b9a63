import { type SQL, sql } from 'drizzle-orm';
import { notifyWorkers } from '../../../core/queries/presence/notify-workers.ts';
import type { QueueTables } from '../../../core/schema/create-queue-tables.ts';
import { queryRows, type Runner } from '../../../core/sql/executor.ts';
import { arrayText } from '../../../core/sql/fence.ts';
import { notedGroups } from '../../../core/sql/grouped-jobs.ts';
import { groupsIn } from '../../../core/sql/statement-context.ts';

export interface Unpark {
  readonly queue: string;
  readonly ids: readonly number[];
  /** Whether to leave those alone that wait for their next attempt, or for their first one. */
  readonly onlyWaiting: boolean;
  /** Where the queue's workers are notified; `undefined`: no notification is sent. */
  readonly channel: string | undefined;
}

/**
 * Ends the wait of jobs of one queue: they are due when the transaction that ends what they waited for
 * commits. Returns the ids of those that are live. A wake-up is a hint: a job that also waits for something
 * else, or whose attempt was given back, runs early and parks again.
 *
 * **Under concurrency.** Waits for a transaction that is just changing a row (a claim or a settlement;
 * `runNext` for as long as it runs the job). It locks the rows in the order of their ids, so two of these
 * statements never deadlock. `live` and the `set` read the row as it is after the wait; a `where` would test
 * the version before it. A job that is held and about to park finds its `run_at` after its claim, and does
 * not park. A cancel that came first has ended the job, and its id is not returned. In a queue with groups it
 * also notes which groups claims should look at; that waits for no other transaction.
 */
export async function unparkJobs(db: Runner, tables: QueueTables, unpark: Unpark): Promise<Set<number>> {
  const rows = await queryRows(db, tables, unparkJobsQuery(tables, unpark));
  const { queue, channel } = unpark;
  if (rows.length > 0 && channel !== undefined) await notifyWorkers(db, tables, queue, channel);
  return new Set(rows.map(({ id }) => Number(id)));
}

/** `claimed_at` is of the row: of a join with `live`, Postgres may make a nested loop over all pairs. */
export function unparkJobsQuery(
  tables: QueueTables,
  { queue, ids, onlyWaiting }: Omit<Unpark, 'channel'>,
): SQL {
  const { queueJobs } = tables;
  const ctes = sql`
    with now as materialized (select statement_timestamp() as at),
    live as materialized (
      select j.id from ${queueJobs} as j
      where j.queue = ${queue} and j.id = any(array(select unnest(${arrayText(ids)}::text::int8[])))
      order by j.id for no key update
    )`;
  const update = sql`
    update ${queueJobs} as j
    set run_at = case when j.worker_id is null then ${
      onlyWaiting
        ? sql`case when j.blockers is null then j.run_at else least(j.run_at, now.at) end`
        : sql`least(j.run_at, now.at)`
    }
      else greatest(now.at, j.claimed_at + interval '1 microsecond') end
    from now
    where j.queue = ${queue} and j.id = any(array(select id from live))
    returning j.id`;
  if (groupsIn(tables, queue) === undefined) return sql`${ctes}${update}`;
  return sql`${ctes},
    unparked as (${update}, j.queue, j.group_key, j.run_at
    )${notedGroups(tables, 'unparked')}
    select id from unparked`;
}
