import { type SQL, sql } from 'drizzle-orm';
import type { RawRow, Runner } from '../../../core/sql/executor.ts';
import { type FaultPoint, faultPoint } from '../../../core/sql/fault-point.ts';
import { type LeasedLimit, type LeaseTables, queryLimitRows } from '../sql/limit-tables.ts';

/**
 * Makes the row in which the workers of a limit keep what they use of it, unless there is one.
 *
 * **Under concurrency.** Of several that make it at once, one does; the others wait for its commit.
 */
export function addUsageQuery({ queueUsage }: LeaseTables, { queue, kind }: LeasedLimit): SQL {
  return sql`
    insert into ${queueUsage} (queue, kind) values (${queue}, ${kind}) on conflict (queue, kind) do nothing`;
}

/**
 * Sends a statement by which a worker takes of that row; if there is none yet, it is made, and the statement
 * sent again. Returns `undefined` when the worker is not registered.
 *
 * @param query answers with `registered`, and with `found`: whether there is such a row
 */
export async function takeOfUsage(
  db: Runner,
  tables: LeaseTables,
  { limit, query, taken }: { readonly limit: LeasedLimit; readonly query: SQL; readonly taken: FaultPoint },
): Promise<RawRow | undefined> {
  const take = async () => {
    const [row] = await queryLimitRows(db, tables, query);
    await faultPoint(taken);
    return row;
  };
  let row = await take();
  if (row?.registered === true && row.found !== true) {
    await queryLimitRows(db, tables, addUsageQuery(tables, limit));
    row = await take();
  }
  return row?.found === true ? row : undefined;
}
