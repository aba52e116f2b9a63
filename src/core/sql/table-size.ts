import { type SQL, sql } from 'drizzle-orm';
import type { PgTable } from 'drizzle-orm/pg-core';
import type { QueueTables } from '../schema/create-queue-tables.ts';
import { quotedName } from './quoted-name.ts';

/**
 * For which tables the plan of a prepared statement may be kept. Such a statement reads nothing unless the
 * table is so when it runs.
 *
 * - `small`: at most 512 kB. Any plan will do, one for an empty table too: to read that much ten times takes
 *   one to five milliseconds.
 * - `grown`: more than that. A plan that is made then finds the next rows in order, or rows by their ids, by
 *   an index, whatever the statistics say: to read all looks more expensive. And an index stays right however
 *   much the table grows.
 *
 * A partitioned table is neither. Not for Citus, where the table's own size is always 0.
 */
export type TableSize = 'small' | 'grown';

const BYTES: Readonly<Record<TableSize, SQL>> = {
  small: sql`<= ${512 * 1024}::int8`,
  grown: sql`> ${512 * 1024}::int8`,
};

const known = new WeakMap<QueueTables['queueJobs'], Map<TableSize, SQL>>();

/** The CTE `table_size`, the first of its statement: whether the table is of this size when that runs. */
export function tableSize(queueJobs: QueueTables['queueJobs'], size: TableSize): SQL {
  const ofTable = known.get(queueJobs) ?? new Map<TableSize, SQL>();
  known.set(queueJobs, ofTable);
  const made = ofTable.get(size) ?? tableSizeOf(queueJobs, size);
  ofTable.set(size, made);
  return made;
}

function tableSizeOf(queueJobs: QueueTables['queueJobs'], size: TableSize): SQL {
  return sql`table_size as materialized (
      select c.relkind = 'r' and pg_relation_size(c.oid) ${BYTES[size]} as ${sql.raw(size)}
      from pg_class as c where c.oid = ${quotedName(queueJobs)}::text::regclass
    )`;
}

/**
 * The same where the statement reads other tables, too, and all of those have to be small. `small_jobs`:
 * whether the first one is small.
 */
export function tableSizes(
  queueJobs: QueueTables['queueJobs'],
  others: readonly PgTable[],
  size: TableSize,
): SQL {
  const jobs = sql`${quotedName(queueJobs)}::text::regclass`;
  const names = others.map((table) => sql`${quotedName(table)}::text::regclass`);
  return sql`table_size as materialized (
      select bool_and(c.relkind = 'r' and case when c.oid = ${jobs}
          then pg_relation_size(c.oid) ${BYTES[size]} else pg_relation_size(c.oid) ${BYTES.small}
        end) as ${sql.raw(size)},
        bool_or(c.oid = ${jobs} and pg_relation_size(c.oid) ${BYTES.small}) as small_jobs
      from pg_class as c where c.oid in (${sql.join([jobs, ...names], sql`, `)})
    )`;
}

const CONDITIONS: Readonly<Record<TableSize, SQL>> = {
  small: sql.raw('(select t.small from table_size as t)'),
  grown: sql.raw('(select t.grown from table_size as t)'),
};

/** As a condition of what reads the table: it is evaluated once, before anything is read. */
export function isOf(size: TableSize): SQL {
  return CONDITIONS[size];
}

/** Whether the table of the jobs is small: see {@link tableSizes}. */
export const areJobsSmall = sql.raw('(select t.small_jobs from table_size as t)');
