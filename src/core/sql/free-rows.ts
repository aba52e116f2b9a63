import { type SQL, sql } from 'drizzle-orm';
import type { QueueTables } from '../schema/create-queue-tables.ts';
import type { Value } from './kept-statement.ts';

/**
 * The CTE `free`: the ids of those jobs `j` that fit and that no other transaction has locked. A statement
 * that then changes only {@link amongFree} waits for no other.
 *
 * @param lock `for update` where rows are deleted: rows of the app that refer to them by foreign key lock
 * them, too
 */
export function freeRows(
  { queueJobs }: QueueTables,
  where: SQL,
  lock: SQL = sql`for no key update skip locked`,
): SQL {
  return sql`free as materialized (
      select j.id from ${queueJobs} as j
      where ${where}
      ${lock}
    )`;
}

/** The jobs `j` of {@link freeRows}, by the primary key: the array keeps the planner to it. */
export function amongFree(queue: Value<string>): SQL {
  return sql`j.queue = ${queue} and j.id = any(array(select id from free))`;
}
