import { type SQL, sql } from 'drizzle-orm';
import { queryRows, type Runner } from '../../../core/sql/executor.ts';
import { BATCHES_ENTRY, type TablesOfBatches } from '../sql/batch-tables.ts';

/** What `queue.workflows.stats` returns. */
export interface FlowStats {
  /** How many flows and batches have jobs that have not ended. */
  readonly open: number;
  /** How long ago the oldest of these was enqueued, in milliseconds; `undefined` when none is open. */
  readonly oldestOpenMs: number | undefined;
  /** How many jobs wait for other jobs: to begin, or in their middle for children. */
  readonly waiting: number;
  /** Whether there may be more: the oldest 10,000 sets of jobs were looked at, and as many that wait. */
  readonly isLeast: boolean;
}

/** How many open batches are looked at, and how many jobs that wait for them. */
const COUNTED_BATCHES = 10_000;

/**
 * Counts open flows, and the jobs that wait for others.
 *
 * **Under concurrency.** A plain read of one snapshot. A flow is open as long as one of its jobs is live. A
 * flow whose last job has just ended is no longer counted, even if its tallies are not folded yet.
 */
export async function countOpenFlows(db: Runner, tables: TablesOfBatches): Promise<FlowStats> {
  const [row] = await queryRows(db, tables, countOpenFlowsQuery(tables), { entry: BATCHES_ENTRY });
  const [batches, waits] = [Number(row?.batches ?? 0), Number(row?.waits ?? 0)];
  const oldestMs = row?.oldest_ms ?? null;
  return {
    open: Number(row?.flows ?? 0),
    oldestOpenMs: oldestMs === null ? undefined : Math.max(0, Number(oldestMs)),
    waiting: Number(row?.waiting ?? 0),
    isLeast: batches >= COUNTED_BATCHES || waits >= COUNTED_BATCHES,
  };
}

/**
 * It goes from one batch with live jobs to the next, by the index of `queue_jobs`, so neither the jobs of a
 * batch nor the ended batches cost time. An index of open batches would be written by each batch.
 *
 * @crossesQueues the members of a batch may be in any queue
 */
export function countOpenFlowsQuery({ queueJobs, queueBatches, queueWaits }: TablesOfBatches): SQL {
  return sql`
    with recursive live as (
      (
        select j.batch_id as id, 1 as place from ${queueJobs} as j
        where j.batch_id is not null order by j.batch_id limit 1
      )
      union all
      select (
          select j.batch_id from ${queueJobs} as j where j.batch_id > l.id order by j.batch_id limit 1
        ), l.place + 1
      from live as l where l.id is not null and l.place < ${COUNTED_BATCHES}::int4
    ),
    opened as materialized (
      select b.id, b.flow_id, b.created_at, b.waiting
      from live as l join ${queueBatches} as b on b.id = l.id where b.ended_at is null
    ),
    waits as materialized (
      select w.job_id, w.queue from opened as o join ${queueWaits} as w on w.batch_id = o.id
      where w.policy in ('run', 'cancel') or o.waiting is not null
      limit ${COUNTED_BATCHES}::int4
    )
    select count(distinct o.flow_id)::float8 as flows,
      date_part('epoch',
        statement_timestamp() - min(o.created_at) filter (where o.flow_id is not null)) * 1000 as oldest_ms,
      (select count(l.id) from live as l)::float8 as batches,
      (select count(*) from waits)::float8 as waits,
      (select count(*) from (select distinct w.job_id, w.queue from waits as w) as w)::float8 as waiting
    from opened as o`;
}
