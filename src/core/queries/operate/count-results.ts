import { type SQL, sql } from 'drizzle-orm';
import type { QueueTables } from '../../schema/create-queue-tables.ts';
import { dateOf, epochMs } from '../../sql/epoch-ms.ts';
import { queryRows, type Runner } from '../../sql/executor.ts';

export interface CountedResults {
  readonly queue: string;
  readonly kind: string;
  readonly read: number;
  readonly discarded: number;
  /** Of those that were discarded in the last hour: jobs whose last worker died at them. */
  readonly killers: number;
  readonly since: Date;
}

/** So many results are read. */
export const COUNTED_RESULTS = 10_000;

/**
 * Counts the newest {@link COUNTED_RESULTS} results by queue and kind.
 *
 * **Under concurrency.** A plain read of one snapshot.
 */
export async function countResults(db: Runner, tables: QueueTables): Promise<CountedResults[]> {
  const rows = await queryRows(db, tables, countResultsQuery(tables));
  return rows.map((row) => ({
    queue: String(row.queue),
    kind: String(row.kind),
    read: Number(row.read),
    discarded: Number(row.discarded),
    killers: Number(row.killers),
    since: dateOf(row.since),
  }));
}

export function countResultsQuery({ queueResults }: QueueTables): SQL {
  return sql`
    select r.queue, r.kind, count(*)::float8 as read,
      count(*) filter (where r.state = 'discarded')::float8 as discarded,
      count(*) filter (where case when r.state = 'discarded'
        and r.finished_at > statement_timestamp() - interval '1 hour'
        then r.errors -> -1 ->> 'name' = 'WorkerLostError' else false end)::float8 as killers,
      min(${epochMs('r.finished_at')}) as since
    from (
      select r.queue, r.kind, r.state, r.errors, r.finished_at from ${queueResults} as r
      order by r.finished_at desc limit ${sql.raw(String(COUNTED_RESULTS))}
    ) as r
    group by r.queue, r.kind`;
}
