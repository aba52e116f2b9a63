import { type SQL, type SQLWrapper, sql } from 'drizzle-orm';
import { NO_GROUP } from '../../job/group.ts';
import type { QueueTables } from '../../schema/create-queue-tables.ts';
import type { OwnColumn } from '../../schema/own-columns.ts';
import { type Executor, queryRows } from '../../sql/executor.ts';
import { groupColumns, notedGroups } from '../../sql/grouped-jobs.ts';
import { ownNames } from '../../sql/own-values.ts';
import { declaresGroups } from '../../sql/statement-context.ts';
import { notified, type WakeUp, wakePayload } from '../../sql/wake-up.ts';

/** The columns of the jobs, as expressions over the user's own select. */
export interface SelectedJobs {
  /** The user's select with its alias, for a `FROM`. */
  readonly source: SQLWrapper;
  /** False when all have a delay. Whether a `runAt` has passed is for the database's clock to say. */
  readonly mayBeDue: boolean;
  readonly queue: string;
  readonly kind: string;
  readonly maxAttempts: number;
  readonly payload: SQL;
  readonly priority: SQL;
  readonly runAt: SQL;
  readonly uniqueKey: SQL | undefined;
  readonly metadata: SQL;
  /** Null where a job has none of its own; `undefined`: none has. For queues with groups. */
  readonly group?: SQL | undefined;
  /** For queues with groups or rates. */
  readonly cost?: SQL | undefined;
  /** The own columns to set; the others get their defaults. */
  readonly own?: readonly { readonly column: OwnColumn; readonly value: SQL }[];
}

export interface SelectInsertResult {
  readonly enqueued: number;
  readonly duplicates: number;
  /** The queue, if its workers are notified when the transaction commits. */
  readonly woken: readonly string[];
}

/**
 * Inserts one job per row of the user's own select, in one statement, without a row passing through the
 * process. Returns how many it inserted, and how many it left out because a live job has their unique key.
 *
 * **Under concurrency.** As {@link insertJobs}: the unique index decides, and keys go in sorted order. The
 * select sees what any select in the caller's transaction sees. Its notes about groups wait for no other
 * transaction.
 */
export async function insertSelectedJobs(
  db: Executor,
  tables: QueueTables,
  jobs: SelectedJobs,
  wakeUp?: WakeUp,
): Promise<SelectInsertResult> {
  const query = insertSelectedJobsQuery(tables, jobs, wakeUp);
  const [row] = await queryRows(db, tables, query, { withUsersSql: true });
  const enqueued = Number(row?.enqueued);
  const duplicates = Number(row?.selected ?? enqueued) - enqueued;
  return { enqueued, duplicates, woken: row?.woke === true ? [jobs.queue] : [] };
}

export function insertSelectedJobsQuery(tables: QueueTables, jobs: SelectedJobs, wakeUp?: WakeUp): SQL {
  const { queueJobs } = tables;
  const own = jobs.own ?? [];
  const grouped = declaresGroups(tables, jobs.queue);
  const withCosts = grouped || jobs.cost !== undefined;
  const names = sql`${groupColumns(withCosts)}${ownNames(own.map(({ column }) => column))}`;
  const group = grouped ? sql`coalesce(${jobs.group ?? sql`null`}, ${NO_GROUP}::text)` : sql`null::text`;
  const cost = sql`(${jobs.cost ?? sql`1`})::int2`;
  const ofGroups = withCosts ? sql`, ${group}, ${cost}` : sql``;
  const returning = grouped ? sql`queue, group_key, run_at` : sql`run_at`;
  const noted = grouped ? notedGroups(tables, 'inserted') : sql``;
  // Each expression of the user is in parentheses before its cast, since it may have any precedence.
  const insert = sql`
      insert into ${queueJobs}
        (queue, kind, max_attempts, payload, priority, run_at, created_at, unique_key, metadata${names})`;
  const columns = sql`
        ${jobs.queue}::text, ${jobs.kind}::text, ${jobs.maxAttempts}::int2, ${jobs.payload},
        (${jobs.priority})::int2, (${jobs.runAt})::timestamptz, statement_timestamp()`;
  const enqueued =
    wakeUp === undefined
      ? sql`select count(*)::float8 as enqueued, null as woke from inserted`
      : sql`select enqueued,
        case when due then ${notified(wakeUp.channel, wakePayload(jobs.queue, wakeUp))} end as woke
      from (
        select count(*)::float8 as enqueued, bool_or(i.run_at <= statement_timestamp()) as due
        from inserted as i
      ) as counted`;
  if (jobs.uniqueKey === undefined) {
    // Nothing is copied: a million rows stream from the select into the table.
    return sql`
    with inserted as (${insert}
      select ${columns}, null, ${jobs.metadata}${ofGroups}${sql.join(own.map(({ value }) => sql`, ${value}`))}
      from ${jobs.source}
      returning ${returning}
    )${noted}
    ${enqueued}`;
  }
  return sql`
    with i as materialized (
      select ${jobs.payload} as payload, (${jobs.priority})::int2 as priority,
        (${jobs.runAt})::timestamptz as run_at, (${jobs.uniqueKey})::text as unique_key,
        ${jobs.metadata} as metadata${
          withCosts ? sql`, ${group} as group_key, ${cost} as weight` : sql``
        }${sql.join(own.map(({ value }, index) => sql`, ${value} as ${sql.raw(`own_${index}`)}`))}
      from ${jobs.source}
    ),
    inserted as (
      insert into ${queueJobs}
        (queue, kind, max_attempts, created_at, payload, priority, run_at, unique_key, metadata${names})
      select ${jobs.queue}::text, ${jobs.kind}::text, ${jobs.maxAttempts}::int2, statement_timestamp(), i.*
      from i order by unique_key
      on conflict (queue, kind, unique_key) where unique_key is not null do nothing
      returning ${returning}
    )${noted}
    select (select count(*) from i)::float8 as selected, e.* from (${enqueued}) as e`;
}
