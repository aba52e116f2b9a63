import { sql } from 'drizzle-orm';
import { cte } from '../../../skip-locked/cte.ts';
import { type QueryBuilders, uncached } from '../../../skip-locked/query-builders.ts';
import type { RowsQuery } from '../../../skip-locked/rows-query.ts';
import type { NewJob } from '../../job/new-job.ts';
import type { QueueTables } from '../../schema/create-queue-tables.ts';
import { NO_DATABASE } from '../../sql/executor.ts';
import { anyInGroup, groupNotes } from '../../sql/grouped-jobs.ts';
import { notified, type WakeUp, wakePayload } from '../../sql/wake-up.ts';
import { plainInsert } from './insert-jobs.ts';

type InsertedFields = {
  readonly id: ReturnType<typeof sql<number | null>>;
  readonly duplicate: ReturnType<typeof sql<boolean>>;
};

/**
 * Inserts one job by a query of Drizzle's own, where no second statement can follow. It always returns one
 * row. Where a live job has the same unique key, that is its id, or `null` when this statement cannot see it.
 *
 * **Under concurrency.** As `insertJobs`: the unique index decides, and the statement waits for another open
 * transaction that has just inserted the key. If that commits, this statement, which began earlier, does not
 * see its job: there is no id.
 */
export function insertOneJobQuery(
  db: QueryBuilders,
  tables: QueueTables,
  job: NewJob,
  wakeUp?: WakeUp,
): RowsQuery<InsertedFields> {
  const { queueJobs } = tables;
  const grouped = anyInGroup([job]);
  const inserted = cte(
    'inserted',
    {},
    sql`${plainInsert(tables, [job])}, run_at${grouped ? sql`, queue, group_key` : sql``}`,
  );
  const noted = grouped ? cte('noted', {}, groupNotes(tables, 'inserted')) : undefined;
  const standing =
    job.uniqueKey === null
      ? sql`null`
      : sql`(
        select j.id from ${queueJobs} as j
        where j.queue = ${job.queue} and j.kind = ${job.kind} and j.unique_key = ${job.uniqueKey})`;
  const fields = {
    id: sql<number | null>`coalesce(i.id, ${standing})`.mapWith(Number).as('id'),
    // Part of a column that is read, or Postgres may leave the notification out.
    duplicate: (wakeUp === undefined
      ? sql<boolean>`i.id is null`
      : sql<boolean>`coalesce((select not w.woke from woke as w), i.id is null)`
    ).as('duplicate'),
  };
  // By itself: beside a read of the jobs Citus would notify on the node of the shard.
  const woke =
    wakeUp &&
    cte(
      'woke',
      {},
      sql`
    select ${notified(wakeUp.channel, wakePayload(job.queue, wakeUp))} as woke from inserted as i
    where i.run_at <= statement_timestamp()`,
    );
  const enqueued = cte(
    'enqueued',
    fields,
    sql`
    select ${fields.id.sql} as id, ${fields.duplicate.sql} as duplicate
    from (select 1) as one left join inserted as i on true`,
  );
  // The CTE has the given fields under its own name; Drizzle's types express them differently.
  return uncached(
    primaryOf(db)
      .with(...[inserted, noted, woke, enqueued].filter((part) => part !== undefined))
      .select()
      .from(enqueued),
  ) as unknown as RowsQuery<InsertedFields>;
}

/**
 * drizzle-orm 0.45 with replicas sends whatever begins with `with` to a replica.
 *
 * @throws TypeError when `db` is not a database
 */
function primaryOf(db: QueryBuilders): QueryBuilders {
  // Callers without TypeScript, as in queryRows. Arrays have a `with`, too.
  if (typeof db?.with !== 'function' || typeof Reflect.get(db, 'execute') !== 'function')
    throw new TypeError(NO_DATABASE);
  // Drizzle keeps a database of the same type under this name.
  return (Reflect.get(db, '$primary') as QueryBuilders | undefined) ?? db;
}
