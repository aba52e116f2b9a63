import { type SQL, sql } from 'drizzle-orm';
import { queryRows, type Runner } from '../../../core/sql/executor.ts';
import { BATCHES_ENTRY, type TablesOfBatches } from '../sql/batch-tables.ts';

export interface OpenBatches {
  /** Open batches whose members are to end. */
  readonly unwanted: readonly number[];
  /**
   * Open batches of children whose parent was cancelled without a word to them: it has ended while they were
   * just being enqueued.
   */
  readonly orphaned: readonly number[];
  /** Open batches that were not recounted for a minute: they may wait for members that are gone. */
  readonly toRecount: readonly number[];
  /** All batches of the slice, also those that have ended. */
  readonly all: readonly number[];
  /** The last of the slice; `undefined` once there are no more. */
  readonly last: number | undefined;
}

/** How long after its last recount, or after it was made, an open batch is recounted. */
const RECOUNT_AFTER_MS = 60_000;

/**
 * Looks at the next `limit` batches, in the order of their ids, whether they are open or not.
 *
 * **Under concurrency.** A plain read.
 */
export async function findOpenBatches(
  db: Runner,
  tables: TablesOfBatches,
  after: number,
  limit: number,
): Promise<OpenBatches> {
  const rows = await queryRows(db, tables, findOpenBatchesQuery(tables, after, limit), {
    entry: BATCHES_ENTRY,
  });
  const open = rows.filter((row) => row.open === true);
  const ids = (isOne: (row: (typeof rows)[number]) => boolean) =>
    open.filter(isOne).map(({ id }) => Number(id));
  return {
    all: rows.map(({ id }) => Number(id)),
    unwanted: ids((row) => row.unwanted === true),
    orphaned: ids((row) => row.orphaned === true),
    toRecount: ids((row) => row.stale === true),
    last: rows.length === limit ? Number(rows.at(-1)?.id) : undefined,
  };
}

export function findOpenBatchesQuery(tables: TablesOfBatches, after: number, limit: number): SQL {
  const { queueJobs, queueResults, queueBatches, queueWaits } = tables;
  return sql`
    select b.id, b.ended_at is null as open, b.cancel_reason is not null as unwanted,
      b.ended_at is null and b.cancel_reason is null and (
        select r.job_id from ${queueWaits} as i
        join ${queueResults} as r on r.queue = i.queue and r.job_id = i.job_id
        where i.batch_id = b.id and i.policy = 'parent' and r.state = 'cancelled'
          and (select j.id from ${queueJobs} as j where j.queue = i.queue and j.id = i.job_id) is null
        limit 1
      ) is not null as orphaned,
      coalesce(b.recounted_at, b.created_at)
        < statement_timestamp() - ${RECOUNT_AFTER_MS} * interval '1 millisecond' as stale
    from ${queueBatches} as b where b.id > ${after}::int8 order by b.id limit ${limit}::int4`;
}
