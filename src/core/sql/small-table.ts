import { type SQL, sql } from 'drizzle-orm';
import type { PgTable } from 'drizzle-orm/pg-core';
import type { QueueTables } from '../schema/create-queue-tables.ts';
import { quotedName } from './quoted-name.ts';

/** To read so much ten times takes a millisecond or two. */
const SMALL_BYTES = 512 * 1024;
/** To read so much looks more expensive than to find a few rows by the primary key. */
const LARGE_BYTES = 4 * 1024 * 1024;

const known = new WeakMap<QueueTables['queueJobs'], SQL>();

/**
 * The CTE `table_size`, which says whether the table is `small` when the statement runs. A statement that
 * reads nothing unless the table is small can use a plan for an empty table, and need not be planned again. A
 * partitioned table counts as large. Not for Citus, where the table's own size is always 0.
 */
export function tableSize(queueJobs: QueueTables['queueJobs']): SQL {
  const made = known.get(queueJobs) ?? tableSizeOf(queueJobs);
  known.set(queueJobs, made);
  return made;
}

function tableSizeOf(queueJobs: QueueTables['queueJobs']): SQL {
  return sql`table_size as materialized (
      select c.relkind = 'r' and pg_relation_size(c.oid) <= ${SMALL_BYTES}::int8 as small
      from pg_class as c where c.oid = ${quotedName(queueJobs)}::text::regclass
    ),
    `;
}

/** The same, where all of these tables have to be small. */
export function tableSizes(tables: readonly PgTable[]): SQL {
  const names = tables.map((table) => sql`${quotedName(table)}::text::regclass`);
  return sql`table_size as materialized (
      select bool_and(c.relkind = 'r' and pg_relation_size(c.oid) <= ${SMALL_BYTES}::int8) as small
      from pg_class as c where c.oid in (${sql.join(names, sql`, `)})
    ),
    `;
}

/** As a condition of what reads the table: it is evaluated once, before anything is read. */
export const isSmall: SQL = sql.raw('(select t.small from table_size as t)');

/**
 * The CTE `table_size`, which says whether the table is `large` when the statement runs. A statement that
 * does nothing unless it is, and finds a few rows by their ids, is planned while the table is large. So a
 * plan that is kept uses the primary key. A partitioned table counts as small. Not for Citus, as
 * {@link tableSize}.
 */
export function largeTable(queueJobs: QueueTables['queueJobs']): SQL {
  return sql`table_size as materialized (
      select c.relkind = 'r' and pg_relation_size(c.oid) >= ${LARGE_BYTES}::int8 as large
      from pg_class as c where c.oid = ${quotedName(queueJobs)}::text::regclass
    ),
    `;
}

/** As {@link isSmall}. */
export const isLarge: SQL = sql.raw('(select t.large from table_size as t)');
