import { type SQL, sql } from 'drizzle-orm';
import type { ErrorRecord } from '../job/describe-error.ts';
import { cancellation } from '../job/transition.ts';
import type { QueueTables } from '../schema/create-queue-tables.ts';
import { ownColumnsOf } from '../schema/own-columns.ts';
import { noticeOfEnd } from './end-notice.ts';
import { endHolds } from './hold-end.ts';
import { ownNames } from './own-values.ts';
import { withError, withTime } from './recorded-error.ts';
import { groupsIn } from './statement-context.ts';
import { REQUESTED } from './wake-channel.ts';
import { notified } from './wake-up.ts';

export interface EndAsCancelled {
  readonly queue: string;
  /** `with free as (…)`: a select of the jobs' ids that locks their rows. */
  readonly free: SQL;
  /** Without an attempt: with that of each job. `as requested`: what stands in the row of each. */
  readonly reason: (Omit<ErrorRecord, 'attempt'> & { readonly attempt?: number }) | 'as requested';
  /** Where the workers that held them are notified; `undefined`: none is. */
  readonly channel: string | undefined;
}

/**
 * Moves the jobs of `free` to the results as `cancelled`; returns their ids as `id`. A job that waits ends
 * with the time of its cancel as its `run_at`. Those who wait for a job that asks for it are notified by
 * the same commit: no worker has a hand in it.
 */
export function endAsCancelled(tables: QueueTables, { queue, free, reason, channel }: EndAsCancelled): SQL {
  const { queueJobs, queueResults } = tables;
  // It may have kept those behind it waiting for its next attempt.
  const unblocked = groupsIn(tables, queue)?.unblock({ rows: 'cancelled', queue, which: 'both' }) ?? sql``;
  const own = ownColumnsOf(queueJobs);
  const record = recordOf(reason);
  const insert = sql`
    insert into ${queueResults} (job_id, queue, kind, payload, state, errors, attempt, max_attempts, priority,
      weight, fence, batch_id, unique_key, group_key, metadata, worker_id, created_at, run_at, claimed_at,
      finished_at${ownNames(own)})
    select c.id, c.queue, c.kind, c.payload, 'cancelled',
      ${withError(sql`c.errors`, sql`(${withTime(record)})`)},
      c.attempt, c.max_attempts, c.priority, c.weight, c.fence, c.batch_id, c.unique_key, c.group_key,
      c.metadata, c.worker_id, c.created_at,
      case when c.run_at = 'infinity' then statement_timestamp() else c.run_at end, c.claimed_at,
      statement_timestamp()${ownNames(own, 'c.')}
    from cancelled as c
    returning job_id, metadata${reason === 'as requested' ? sql`, batch_id` : sql``}`;
  const told = noticeOfEnd(tables, { id: sql`r.job_id`, metadata: sql`r.metadata` });
  const woke = channel === undefined ? sql`` : sql`, ${notified(channel, sql`${REQUESTED}`)} as woke`;
  return endHolds(tables, {
    queue,
    ctes: free,
    change: { endsAs: { failed: sql`true`, cancelled: sql`true` } },
    where: sql`j.queue = ${queue} and j.id = any(array(select id from free))`,
    returning: sql`j.*`,
    answer: {
      name: 'cancelled',
      select: sql`${unblocked},
    recorded as (${insert})
    select r.job_id as id, ${told} as told${woke}${
      reason === 'as requested' ? sql`, r.batch_id` : sql``
    } from recorded as r`,
    },
  });
}

/** The error to add to those of the row `c`. */
function recordOf(reason: EndAsCancelled['reason']): SQL {
  if (reason === 'as requested') {
    const record = sql`${JSON.stringify(cancellation(0, ''))}::text::jsonb`;
    return sql`${record} || jsonb_build_object('attempt', c.attempt, 'message', c.cancel_reason)`;
  }
  const given = sql`${JSON.stringify(reason)}::text::jsonb`;
  return reason.attempt === undefined ? sql`${given} || jsonb_build_object('attempt', c.attempt)` : given;
}
