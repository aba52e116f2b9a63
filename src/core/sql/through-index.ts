import { type SQL, sql } from 'drizzle-orm';

/**
 * The condition of a partial index, for a statement that must read the jobs `j` by that index. The primary
 * key begins with the queue, too. Where the table was empty when it was last vacuumed, and has kept its
 * pages, Postgres expects one row whatever the condition, and takes the index with the fewest levels. Among
 * 50,000 jobs that was the primary key: each claim read the whole queue, and a claim of groups did so for
 * each group.
 *
 * The partial index implies the alternative, so that it costs nothing there. With any other index it would
 * cost as much as 10,000 rows. It is not evaluated either way. Where rows are locked Postgres adds it to
 * both, which leaves next to no difference between them, and the order of the index decides.
 */
export function throughIndex(condition: SQL): SQL {
  return sql`${condition} and (${condition} or j.id in (select generate_series(-10000, -1)))`;
}
