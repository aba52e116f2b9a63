import { type SQL, sql } from 'drizzle-orm';
import { NO_GROUP } from '../../job/group.ts';
import type { QueueTables } from '../../schema/create-queue-tables.ts';
import { ownColumnsOf } from '../../schema/own-columns.ts';
import { type Executor, queryRows } from '../../sql/executor.ts';
import { isGroupedQueue, notedGroups } from '../../sql/grouped-jobs.ts';
import { isDiscarded, type Redrive } from '../../sql/is-discarded.ts';
import { ownNames } from '../../sql/own-values.ts';
import { groupsIn, groupsInAny, membersIn } from '../../sql/statement-context.ts';
import type { StatementExtension } from '../../sql/statement-extension.ts';
import { notified, type WakeUp } from '../../sql/wake-up.ts';

/** The result of a redrive. */
export interface RedriveResult {
  /** How many jobs were put back. */
  readonly redriven: number;
  /** How many stay discarded because a live job has their unique key. */
  readonly duplicates: number;
}

/**
 * Puts discarded jobs back, due now, with all their attempts again, and with the same id, payload and
 * history. The fence goes on from where it was. With `wakeUp` it notifies the workers of every queue that got
 * a job back.
 *
 * **Under concurrency.** It leaves a result that another redrive has locked, so no job comes back twice. It
 * deletes a result only for a job that it inserted: while a live job has the unique key, the result stays.
 * Keys go in the same sorted order as in `insertJobs`, so the two never deadlock. A group that one of the
 * jobs had stopped goes on when this commits.
 */
export async function redriveJobs(
  db: Executor,
  tables: QueueTables,
  redrive: Redrive,
  wakeUp?: WakeUp,
): Promise<RedriveResult & { readonly last?: number }> {
  const [row] = await queryRows(db, tables, redriveJobsQuery(tables, redrive, wakeUp));
  const redriven = Number(row?.redriven);
  const result = { redriven, duplicates: Number(row?.discarded) - redriven };
  return redrive.after === undefined ? result : { ...result, last: Number(row?.last) };
}

/**
 * @insteadOnCitus (plain; waking) redriveJobsQuery, filtered
 * @insteadOnCitus (of groups) redriveJobsQuery, of groups, filtered
 * @insteadOnCitus (of members) an error: no worker starts there whose queue has workflows
 */
export function redriveJobsQuery(tables: QueueTables, redrive: Redrive, wakeUp?: WakeUp): SQL {
  const { queueJobs, queueResults } = tables;
  const own = ownColumnsOf(queueJobs);
  const { queue, limit } = redrive;
  const groups = queue === undefined ? groupsInAny(tables) : groupsIn(tables, queue);
  const members = membersIn(tables);
  return sql`
    with discarded as materialized (
      select r.* from ${queueResults} as r
      where ${isDiscarded(redrive)}
      order by r.job_id limit ${limit ?? null}::int8
      for no key update skip locked
    ),
    redriven as (
      insert into ${queueJobs} (id, queue, kind, payload, priority, run_at, attempt, max_attempts,
        weight, fence, batch_id, unique_key, group_key, errors, metadata,
        created_at${ownNames(own)}) overriding system value
      select d.job_id, d.queue, d.kind, d.payload, d.priority, ${dueAt(groups, queue)}, 0, d.max_attempts,
        d.weight, d.fence, d.batch_id, d.unique_key, ${
          groups === undefined ? sql`d.group_key` : groupNow(groups, queue)
        }, d.errors, d.metadata,
        d.created_at${ownNames(own, 'd.')}
      from discarded as d order by d.queue, d.kind, d.unique_key, d.job_id
      on conflict do nothing
      returning id, queue${groups === undefined ? sql`` : sql`, group_key, run_at`}${
        members === undefined ? sql`` : sql`, batch_id as member_of`
      }
    )${groups === undefined ? sql`` : goingOn(tables, groups, queue)}${
      members?.afterRedrive('redriven') ?? sql``
    },
    removed as (
      delete from ${queueResults} as r
      where ${queue === undefined ? sql`` : sql`r.queue = ${queue} and `}(r.job_id, r.queue) in (
        select id, queue from redriven)
    )
    select (select count(*) from redriven)::float8 as redriven,
      (select count(*) from discarded)::float8 as discarded${
        redrive.after === undefined
          ? sql``
          : sql`,
      (select max(job_id) from discarded)::float8 as last`
      }${
        wakeUp === undefined
          ? sql``
          : sql`,
      (
        select count(${notified(wakeUp.channel, sql`d.queue`)})
        from (select distinct queue from redriven) as d
      )::float8 as woken`
      }`;
}

/** Due now; a job that stops its group takes its old place, before those that wait for it. */
function dueAt(groups: StatementExtension | undefined, queue: string | undefined): SQL {
  if (groups === undefined) return sql`statement_timestamp()`;
  return sql`case when ${groups.hasStoppedGroup(queue)} then d.run_at else statement_timestamp() end`;
}

/** The group of a job `d` that may have ended when its queue had no groups yet. */
function groupNow({ groupedQueues }: StatementExtension, queue: string | undefined): SQL {
  if (groupedQueues === undefined) return sql`d.group_key`;
  return queue === undefined
    ? sql`case when ${isGroupedQueue(groupedQueues, sql`d.queue`)} then coalesce(d.group_key, ${NO_GROUP})
          else d.group_key end`
    : sql`coalesce(d.group_key, ${NO_GROUP})`;
}

/** Claims look at the groups of the jobs, also at those that a discarded job had stopped. */
function goingOn(tables: QueueTables, groups: StatementExtension, queue: string | undefined): SQL {
  const unblocked = groups.unblock({ rows: 'redriven', queue, which: 'discarded' });
  return sql`${notedGroups(tables, 'redriven')}${unblocked}`;
}
