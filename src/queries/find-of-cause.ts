import { type SQL, sql } from 'drizzle-orm';
import type { QueueTables } from '../schema/create-queue-tables.ts';
import { type Executor, queryRows } from '../sql/executor.ts';
import type { JobScope } from '../sql/job-scope.ts';
import { discardedByCause } from './group-errors.ts';

/** Which group of errors: see `groupErrors`. */
export interface Cause {
  readonly scope: JobScope;
  readonly queue: string;
  readonly kind: string;
  readonly name: string;
  readonly cause: string;
  readonly bound: number;
  readonly limit: number;
}

/**
 * The discarded jobs of one group of errors, the oldest first.
 *
 * **Under concurrency.** A plain read. Whoever redrives them by id puts back only those that still stand
 * there as discarded.
 */
export async function findOfCause(db: Executor, tables: QueueTables, cause: Cause): Promise<number[]> {
  const rows = await queryRows(db, tables, findOfCauseQuery(tables, cause));
  return rows.map(({ id }) => Number(id));
}

export function findOfCauseQuery(tables: QueueTables, { name, cause, limit, ...which }: Cause): SQL {
  return sql`
    select d.job_id::float8 as id from (${discardedByCause(tables, which)}) as d
    where d.name = ${name} and d.cause = ${cause}
    order by d.job_id limit ${limit}`;
}
