import { type SQL, sql } from 'drizzle-orm';
import type { QueueTables } from '../../schema/create-queue-tables.ts';
import { dateOf, epochMs } from '../../sql/epoch-ms.ts';
import { type Executor, queryRows } from '../../sql/executor.ts';
import type { JobScope } from '../../sql/job-scope.ts';
import { discardedByCause } from './group-errors.ts';

/** Which group of errors: see `groupErrors`. */
export interface CauseOfErrors {
  readonly scope: JobScope;
  readonly queue: string;
  readonly kind: string;
  readonly name: string;
  readonly cause: string;
  readonly bound: number;
  /** Only jobs that were discarded before this time. */
  readonly finishedBefore: Date;
  /** Only jobs that were discarded at this time or later. */
  readonly finishedAfter?: Date | undefined;
}

/** A part of them, by id. */
export interface CauseSlice extends CauseOfErrors {
  readonly after: number;
  readonly limit: number;
}

/**
 * How many jobs a group of errors has, and when the first of them was discarded.
 *
 * **Under concurrency.** A plain read of one snapshot.
 */
export async function countOfCause(
  db: Executor,
  tables: QueueTables,
  cause: CauseOfErrors,
): Promise<{ readonly jobs: number; readonly since: Date }> {
  const [row] = await queryRows(db, tables, countOfCauseQuery(tables, cause));
  return { jobs: Number(row?.jobs), since: dateOf(row?.since) };
}

export function countOfCauseQuery(tables: QueueTables, { name, cause, ...which }: CauseOfErrors): SQL {
  return sql`
    select count(*)::float8 as jobs,
      ${epochMs('coalesce(min(d.finished_at), statement_timestamp())')} as since
    from (${discardedByCause(tables, which)}) as d
    where d.name = ${name} and d.cause = ${cause}`;
}

/**
 * The ids of the first of them, in order.
 *
 * **Under concurrency.** A plain read. A later redrive by id puts back only the jobs that are still
 * discarded.
 */
export async function findOfCause(db: Executor, tables: QueueTables, slice: CauseSlice): Promise<number[]> {
  const rows = await queryRows(db, tables, findOfCauseQuery(tables, slice));
  return rows.map(({ id }) => Number(id));
}

export function findOfCauseQuery(tables: QueueTables, { name, cause, limit, ...which }: CauseSlice): SQL {
  return sql`
    select d.job_id::float8 as id from (${discardedByCause(tables, which)}) as d
    where d.name = ${name} and d.cause = ${cause}
    order by d.job_id limit ${limit}`;
}
