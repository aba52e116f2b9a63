import { type SQL, sql } from 'drizzle-orm';
import type { QueueTables } from '../../schema/create-queue-tables.ts';
import { queryRows, type Runner } from '../../sql/executor.ts';
import { arrayText } from '../../sql/fence.ts';
import { notedGroups } from '../../sql/grouped-jobs.ts';
import { groupsIn, isDistributed } from '../../sql/statement-context.ts';
import { notifyWorkers } from '../presence/notify-workers.ts';

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

/** Read from the row: of a join with what was locked, Postgres may make a nested loop over all pairs. */
const AFTER_CLAIM = {
  column: sql``,
  from: sql``,
  and: sql``,
  value: sql`j.claimed_at + interval '1 microsecond'`,
};

/** Citus takes no sum of a time and an interval in the `set` of an update. */
const ON_CITUS = {
  column: sql`, j.claimed_at + interval '1 microsecond' as after_claim`,
  from: sql`, live`,
  and: sql` and live.id = j.id`,
  value: sql`live.after_claim`,
};

export function unparkJobsQuery(
  tables: QueueTables,
  { queue, ids, onlyWaiting }: Omit<Unpark, 'channel'>,
): SQL {
  const { queueJobs } = tables;
  const afterClaim = isDistributed(tables) ? ON_CITUS : AFTER_CLAIM;
  const ctes = sql`
    with now as materialized (select statement_timestamp() as at),
    live as materialized (
      select j.id${afterClaim.column} from ${queueJobs} as j
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
      else greatest(now.at, ${afterClaim.value}) end
    from now${afterClaim.from}
    where j.queue = ${queue} and j.id = any(array(select id from live))${afterClaim.and}
    returning j.id`;
  if (groupsIn(tables, queue) === undefined) return sql`${ctes}${update}`;
  return sql`${ctes},
    unparked as (${update}, j.queue, j.group_key, j.run_at
    )${notedGroups(tables, 'unparked')}
    select id from unparked`;
}
