import { type SQL, sql } from 'drizzle-orm';
import type { QueueTables } from '../../schema/create-queue-tables.ts';
import { dateOf, epochMs } from '../../sql/epoch-ms.ts';
import { type Executor, queryRows } from '../../sql/executor.ts';

/** How far back the newest discarded jobs go. */
export interface DiscardedRead {
  /** How many there are, counted up to `bound`. */
  readonly jobs: number;
  /** When the oldest of these was discarded; `undefined` where there is none. */
  readonly since: Date | undefined;
}

/**
 * Counts the jobs that were discarded within the last hours, the newest `bound` at most. An index has only
 * these.
 *
 * **Under concurrency.** A plain read of one snapshot.
 */
export async function countDiscarded(
  db: Executor,
  tables: QueueTables,
  wanted: { readonly hours: number; readonly bound: number },
): Promise<DiscardedRead> {
  const [row] = await queryRows(db, tables, countDiscardedQuery(tables, wanted));
  const since = row?.since;
  return {
    jobs: Number(row?.jobs),
    since: since === null || since === undefined ? undefined : dateOf(since),
  };
}

export function countDiscardedQuery(
  { queueResults }: QueueTables,
  { hours, bound }: { readonly hours: number; readonly bound: number },
): SQL {
  return sql`
    select count(*)::float8 as jobs, ${epochMs('min(d.finished_at)')} as since
    from (
      select r.finished_at from ${queueResults} as r
      where r.state = 'discarded'
        and r.finished_at > statement_timestamp() - ${hours}::float8 * interval '1 hour'
      order by r.finished_at desc limit ${bound}
    ) as d`;
}
