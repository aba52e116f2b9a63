import { type SQL, sql } from 'drizzle-orm';
import { queryRows, type Runner } from '../../../core/sql/executor.ts';
import { arrayText } from '../../../core/sql/fence.ts';
import { notedGroups } from '../../../core/sql/grouped-jobs.ts';
import { groupsIn } from '../../../core/sql/statement-context.ts';
import { REQUESTED } from '../../../core/sql/wake-channel.ts';
import { BATCHES_ENTRY, type TablesOfBatches } from '../sql/batch-tables.ts';

export interface EndMembers {
  readonly queue: string;
  readonly ids: readonly number[];
  /** Where workers are notified; `undefined`: no notification is sent. */
  readonly channel: string | undefined;
}

/**
 * Asks for the end of members of one queue whose batches are to end: a job that is not held is due at once,
 * and ends with its claim, without being run; of one that is held, its worker is told as of any cancel.
 * Returns how many.
 *
 * **Under concurrency.** It waits for no lock: a locked row is left for the next look. The reason stands in
 * the row of the batch, so a crash in between loses nothing. It locks batches before jobs, as a fold does,
 * and reads the reason after that lock: a redrive of the flow that came first has taken it away. A batch that
 * has ended has no member to end: one that lives was put back by itself.
 */
export async function endMembers(db: Runner, tables: TablesOfBatches, end: EndMembers): Promise<number> {
  const [row] = await queryRows(db, tables, endMembersQuery(tables, end), { entry: BATCHES_ENTRY });
  return Number(row?.asked ?? 0);
}

export function endMembersQuery(tables: TablesOfBatches, { queue, ids, channel }: EndMembers): SQL {
  const { queueJobs, queueBatches } = tables;
  const groups = groupsIn(tables, queue);
  // A redrive may take the request back. One that runs then still has to be woken by what it waits for. One
  // that has not begun must not begin before that, even if the worker dies that has claimed it to end it.
  const blockers = sql`case when j.worker_id is not null or j.blockers > 0 then j.blockers end`;
  // One that keeps its place until its next attempt is due now, and so are those behind it.
  const noted =
    groups === undefined
      ? sql``
      : sql`${notedGroups(tables, 'asked')}${groups.unblock({ rows: 'asked', queue, which: 'retried' })}`;
  return sql`
    with wanted as materialized (
      select array(select unnest(${arrayText(ids)}::text::int8[])) as ids
    ),
    unwanted as materialized (
      select b.id, b.cancel_reason as reason from ${queueBatches} as b
      where b.cancel_reason is not null and b.ended_at is null and b.id = any(array(
        select j.batch_id from wanted join ${queueJobs} as j on j.queue = ${queue} and j.id = any(wanted.ids)
      ))
      order by b.id for share of b skip locked
    ),
    free as materialized (
      select j.id, b.reason from wanted
      join ${queueJobs} as j on j.queue = ${queue} and j.id = any(wanted.ids)
      join unwanted as b on b.id = j.batch_id
      where j.cancel_reason is null
      order by j.id for no key update of j skip locked
    ),
    asked as (
      update ${queueJobs} as j
      set cancel_reason = i.reason, blockers = ${blockers},
        run_at = case when j.worker_id is null then least(j.run_at, statement_timestamp()) else j.run_at end
      from free as i
      where j.queue = ${queue} and j.id = i.id
      returning j.queue, j.id, j.run_at, j.group_key, j.worker_id is null as due
    )${noted}
    select (select count(*) from asked)::float8 as asked${
      channel === undefined
        ? sql``
        : sql`,
      (
        select count(pg_notify(${channel}::text, case when q.due then ${queue}::text else ${REQUESTED} end))
        from (select distinct due from asked) as q
      ) as told`
    }`;
}
