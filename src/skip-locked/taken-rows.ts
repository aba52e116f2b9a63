import { type SQL, sql } from 'drizzle-orm';
import type { PgTable } from 'drizzle-orm/pg-core';
import { type ExclusiveStrength, exclusiveLockOf, lockingClauses, type WhichRows } from './lock-options.ts';
import { primaryKeyOf } from './primary-key.ts';

/**
 * The condition of a `DELETE` or `UPDATE` of `table` that matches and locks the first rows that are not
 * locked yet.
 *
 * **Whatever the planner does, it locks once and never more than the limit.** The obvious `id in (select …
 * limit 1 for update skip locked)` does not promise that: the planner may make it a join that runs the
 * subselect once per row of the table, and each run skips what the previous one took. With statistics from
 * when the table was small, it took 200 rows instead of one.
 * - One key column: `array(select …)` depends on nothing outside, so Postgres computes it once, before the
 *   statement, and looks the ids up by the primary key, even in a table without statistics.
 * - Several: Postgres never inlines a CTE with row locks (not even with `NOT MATERIALIZED`) and computes it
 *   once, however often a join reads it. An array of rows would be as safe, but no index can look it up.
 *
 * Inside the subselect the table's columns are the subselect's own, since it names the same table.
 */
export function isTaken(what: string, table: PgTable, which: WhichRows, strength: ExclusiveStrength): SQL {
  const key = primaryKeyOf(what, table);
  const lock = exclusiveLockOf(what, strength);
  const columns = sql.join([...key], sql`, `);
  const select = sql`select ${columns} from ${table}${lockingClauses(what, which, lock)}`;
  if (key.length === 1) return sql`${columns} = any(array(${select}))`;
  // Own names, since the names of columns in SQL may depend on the database's `casing`.
  const names = sql.raw(key.map((_, index) => `k${index}`).join(', '));
  return sql`(${columns}) in (with locked (${names}) as (${select}) select ${names} from locked)`;
}
