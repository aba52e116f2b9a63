import { sql } from 'drizzle-orm';
import { QueryBuilder } from 'drizzle-orm/pg-core';
import type { NewJob } from '../job/new-job.ts';
import type { QueueTables } from '../schema/create-queue-tables.ts';
import type { QueryBuilders } from '../skip-locked/query-builders.ts';
import type { RowsQuery } from '../skip-locked/rows-query.ts';
import { NO_DATABASE } from '../sql/executor.ts';
import { notified, type WakeUp } from '../sql/wake-up.ts';
import { insertJobsQuery } from './insert-jobs.ts';

/** The fields of a row that says what became of an insert. */
type InsertedFields = {
  readonly id: ReturnType<typeof sql<number | null>>;
  readonly duplicate: ReturnType<typeof sql<boolean>>;
};

/**
 * Inserts one job by a query of Drizzle's own, for where a statement cannot be followed by another: it answers one row in any
 * case. Where a live job with the same unique key stands, its id, or `null` when this statement cannot see it.
 *
 * **Under concurrency.** As `insertJobs`: the unique index decides, and a key that another open transaction has just
 * inserted is waited for. That job is not seen by this statement, which began before its commit; so there is no id.
 */
export function insertOneJobQuery(
  db: QueryBuilders,
  tables: QueueTables,
  job: NewJob,
  wakeUp?: WakeUp,
): RowsQuery<InsertedFields> {
  const builder = new QueryBuilder();
  const { queueJobs } = tables;
  const inserted = builder.$with('inserted', {}).as(sql`${insertJobsQuery(tables, [job])}, run_at`);
  const standing =
    job.uniqueKey === null
      ? sql`null`
      : sql`(
        select j.id from ${queueJobs} as j
        where j.queue = ${job.queue} and j.kind = ${job.kind} and j.unique_key = ${job.uniqueKey})`;
  const fields = {
    id: sql<number | null>`coalesce(i.id, ${standing})`.mapWith(Number).as('id'),
    // The notification is part of a column that is read, or Postgres need not send it.
    duplicate: (wakeUp === undefined
      ? sql<boolean>`i.id is null`
      : sql<boolean>`
        case when i.run_at <= statement_timestamp() then not (${notified(wakeUp.channel, sql`${job.queue}::text`)}) else i.id is null end`
    ).as('duplicate'),
  };
  const enqueued = builder.$with('enqueued', fields).as(sql`
    select ${fields.id.sql} as id, ${fields.duplicate.sql} as duplicate
    from (select 1) as one left join inserted as i on true`);
  // The fields of the CTE are the given ones under its name, which Drizzle's types express by other types.
  return primaryOf(db)
    .with(inserted, enqueued)
    .select()
    .from(enqueued)
    .$withCache(false) as unknown as RowsQuery<InsertedFields>;
}

/**
 * Of a database with replicas, drizzle-orm 0.45 sends to a replica what begins with `with`.
 *
 * @throws TypeError when `db` is no database
 */
function primaryOf(db: QueryBuilders): QueryBuilders {
  // For callers without TypeScript, as in queryRows. Arrays have a `with` too.
  if (typeof db?.with !== 'function' || typeof Reflect.get(db, 'execute') !== 'function')
    throw new TypeError(NO_DATABASE);
  // Under this name Drizzle keeps a database of the same type.
  return (Reflect.get(db, '$primary') as QueryBuilders | undefined) ?? db;
}
