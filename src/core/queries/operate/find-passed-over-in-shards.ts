import { type SQL, sql } from 'drizzle-orm';
import type { QueueTables } from '../../schema/create-queue-tables.ts';
import { msBetween } from '../../sql/epoch-ms.ts';
import { queryRows, type Runner } from '../../sql/executor.ts';
import { isClaimRefused } from '../../sql/refused-claim.ts';
import { findFirstDue } from './find-first-due.ts';
import type { FoundPassedOver, PassedOver } from './find-passed-over.ts';

/** Less than a minute is not reported. */
const LATE_MS = 60_000;
/** So many heads are looked up, each by a statement. */
const MAX_HEADS = 100;

/**
 * Does on Citus what `findPassedOver` does elsewhere: there the index cannot be followed from queue to queue,
 * so each shard reads all its jobs, as it does to count them.
 *
 * **Under concurrency.** Plain reads of one snapshot each. A job that is claimed between two is not reported.
 */
export async function findPassedOverInShards(
  db: Runner,
  tables: QueueTables,
  limit: number,
): Promise<FoundPassedOver> {
  const rows = await queryRows(db, tables, findPassedOverInShardsQuery(tables, limit));
  const bands: PassedOver[] = [];
  let heads = 0;
  for (const row of rows) {
    const queue = String(row.queue);
    const isLate = Number(row.due_ms ?? 0) >= LATE_MS && ++heads <= MAX_HEADS;
    bands.push({
      queue,
      parked: Number(row.parked),
      parkedId: row.parked_id === null ? undefined : Number(row.parked_id),
      head: isLate ? await findFirstDue(db, tables, { queue, priority: Number(row.priority) }) : undefined,
      isOvertaken: row.overtaken === true,
      isServed: row.served === true,
    });
  }
  return { bands, areAll: rows.length < limit && heads <= MAX_HEADS };
}

/**
 * Each queue is in one shard, so groups by queue are made there, and nothing but these is sent.
 *
 * @crossesQueues reads the jobs of all queues
 */
export function findPassedOverInShardsQuery({ queueJobs }: QueueTables, limit: number): SQL {
  const due = 'j.worker_id is null and j.group_key is null and j.run_at <= statement_timestamp()';
  const first = `min(j.run_at) filter (where ${due})`;
  const held = sql`j.worker_id is not null and j.group_key is null`;
  return sql`
    select j.queue, j.priority,
      count(*) filter (where ${isClaimRefused})::float8 as parked,
      min(j.id) filter (where ${isClaimRefused}) as parked_id,
      ${msBetween(first, 'statement_timestamp()')} as due_ms,
      max(j.run_at) filter (where ${held}) > ${sql.raw(first)} + interval '1 minute' as overtaken,
      coalesce(bool_or(${held}), false) as served
    from ${queueJobs} as j
    where j.run_at = 'infinity' or j.run_at <= statement_timestamp()
    group by j.queue, j.priority
    order by j.queue, j.priority limit ${limit}`;
}
