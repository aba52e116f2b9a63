import { type SQL, sql } from 'drizzle-orm';
import type { QueueTables } from '../../schema/create-queue-tables.ts';
import { dateOf, epochMs } from '../../sql/epoch-ms.ts';
import { type Executor, queryRows } from '../../sql/executor.ts';
import { inScope, type JobScope } from '../../sql/job-scope.ts';

/** The newest discarded jobs, and how far back they go. */
export interface DiscardedRead {
  /** How many there are, counted up to `bound`. */
  readonly read: number;
  /** How many of these are in the scope. */
  readonly jobs: number;
  /** When the oldest of those that were read was discarded; `undefined` where there is none. */
  readonly since: Date | undefined;
}

export interface DiscardedToCount {
  readonly scope: JobScope;
  readonly hours: number;
  readonly bound: number;
}

/**
 * Counts the jobs that were discarded within the last hours, the newest `bound` at most, whatever the scope.
 * An index has only these.
 *
 * **Under concurrency.** A plain read of one snapshot.
 */
export async function countDiscarded(
  db: Executor,
  tables: QueueTables,
  wanted: DiscardedToCount,
): Promise<DiscardedRead> {
  const [row] = await queryRows(db, tables, countDiscardedQuery(tables, wanted));
  const since = row?.since;
  return {
    read: Number(row?.read),
    jobs: Number(row?.jobs),
    since: since === null || since === undefined ? undefined : dateOf(since),
  };
}

export function countDiscardedQuery(
  { queueResults }: QueueTables,
  { scope, hours, bound }: DiscardedToCount,
): SQL {
  return sql`
    select count(*)::float8 as read, (count(*) filter (where d.seen))::float8 as jobs,
      ${epochMs('min(d.finished_at)')} as since
    from (
      select r.finished_at, ${sql.join([sql`true`, ...inScope(scope, 'r')], sql` and `)} as seen
      from ${queueResults} as r
      where r.state = 'discarded'
        and r.finished_at > statement_timestamp() - ${hours}::float8 * interval '1 hour'
      order by r.finished_at desc limit ${bound}
    ) as d`;
}
