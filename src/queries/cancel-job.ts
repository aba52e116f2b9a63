import { type SQL, sql } from 'drizzle-orm';
import type { ErrorRecord } from '../job/describe-error.ts';
import type { QueueTables } from '../schema/create-queue-tables.ts';
import { ownColumnsOf } from '../schema/own-columns.ts';
import { queryRows, type Runner } from '../sql/executor.ts';
import { groupingOf } from '../sql/grouping.ts';
import { endHolds } from '../sql/hold-end.ts';
import { ownNames } from '../sql/own-values.ts';
import { withError, withTime } from '../sql/recorded-error.ts';
import { REQUESTED } from '../sql/wake-channel.ts';
import { notified } from '../sql/wake-up.ts';

export interface JobCancel {
  readonly id: number;
  readonly queue: string;
  readonly reason: ErrorRecord;
  /** Also when a worker holds it, which is told on `channel`; `undefined` where nobody is to be notified. */
  readonly force?: { readonly channel: string | undefined } | undefined;
}

/**
 * Moves a job that nobody holds, or by `force` any job, to the results as `cancelled`; returns whether it
 * did. A job that waits ends with the time of its cancel as its `run_at`.
 *
 * **Under concurrency.** Never waits: a locked row, such as one that a claim has just locked, is left alone.
 * A job that is cancelled here no longer matches a claim or, by force, its holder's settlement.
 */
export async function cancelJob(db: Runner, tables: QueueTables, cancel: JobCancel): Promise<boolean> {
  const rows = await queryRows(db, tables, cancelJobQuery(tables, cancel));
  return rows.length > 0;
}

export function cancelJobQuery(tables: QueueTables, { id, queue, reason, force }: JobCancel): SQL {
  const { queueJobs, queueResults } = tables;
  const grouping = groupingOf(tables, queue);
  // It may have kept those behind it waiting for its next attempt.
  const unblocked = grouping
    ? sql`,
    unblocked as (
      delete from ${grouping.tables.queueHolds} as h using cancelled as c
      where h.queue = ${queue} and h.group_key = c.group_key and h.job_id = c.id
    )`
    : sql``;
  const own = ownColumnsOf(queueJobs);
  const free = sql`
    with free as (
      select j.id from ${queueJobs} as j
      where j.queue = ${queue} and j.id = ${id}${force === undefined ? sql` and j.worker_id is null` : sql``}
      for no key update skip locked
    )`;
  const insert = sql`
    insert into ${queueResults} (job_id, queue, kind, payload, state, errors, attempt, max_attempts, priority,
      weight, fence, batch_id, unique_key, group_key, metadata, worker_id, created_at, run_at, claimed_at,
      finished_at${ownNames(own)})
    select c.id, c.queue, c.kind, c.payload, 'cancelled',
      ${withError(sql`c.errors`, sql`(${withTime(sql`${JSON.stringify(reason)}::text::jsonb`)})`)},
      c.attempt, c.max_attempts, c.priority, c.weight, c.fence, c.batch_id, c.unique_key, c.group_key,
      c.metadata, c.worker_id, c.created_at,
      case when c.run_at = 'infinity' then statement_timestamp() else c.run_at end, c.claimed_at,
      statement_timestamp()${ownNames(own, 'c.')}
    from cancelled as c
    returning job_id`;
  const waking = (channel: string) => sql`,
    recorded as (${insert})
    select r.job_id, ${notified(channel, sql`${REQUESTED}`)} as woke from recorded as r`;
  return endHolds(tables, {
    queue,
    ctes: free,
    change: 'delete',
    where: sql`j.queue = ${queue} and j.id = any(array(select id from free))`,
    returning: sql`j.*`,
    answer: {
      name: 'cancelled',
      select: sql`${unblocked}${force?.channel === undefined ? insert : waking(force.channel)}`,
    },
  });
}
