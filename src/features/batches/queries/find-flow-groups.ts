import { type SQL, sql } from 'drizzle-orm';
import { queryRows, type Runner } from '../../../core/sql/executor.ts';
import { type JobState, liveState } from '../../../core/sql/job-record.ts';
import { inScope, type JobScope } from '../../../core/sql/job-scope.ts';
import { BATCHES_ENTRY, type TablesOfBatches } from '../sql/batch-tables.ts';

/** What is read of a flow at most. */
export const FLOW_BOUNDS = {
  batches: 2_000,
  /** Live members of a batch, and as many results. */
  members: 5_000,
  /** Jobs in all. */
  jobs: 20_000,
  /** Rows that say what waits for what. */
  waits: 20_000,
  groups: 1_000,
} as const;

/** Jobs of one kind in one batch that wait for the same batches, as far as they were read. */
export interface FoundGroup {
  /** `null` for a job that waits for the flow and is not part of it. */
  readonly batchId: number | null;
  readonly kind: string;
  /** The batches that have to end before, in the order of their ids. */
  readonly after: readonly number[];
  /** Whether some of its jobs end as cancelled where one before them has failed. */
  readonly cancels: boolean;
  readonly firstId: number;
  readonly states: Readonly<Partial<Record<JobState, number>>>;
}

/** All states, in the order in which a job has them. */
export const STATES: readonly JobState[] = [
  'waiting',
  'scheduled',
  'due',
  'running',
  'completed',
  'discarded',
  'cancelled',
];

/**
 * The jobs of a flow in groups, the first ids first: as many as {@link FLOW_BOUNDS} say, and one group more
 * where there are more.
 *
 * **Under concurrency.** A plain read, so one snapshot: a job that ends meanwhile is counted once.
 */
export async function findFlowGroups(
  db: Runner,
  tables: TablesOfBatches,
  flowId: number,
  scope: JobScope,
): Promise<FoundGroup[]> {
  const query = findFlowGroupsQuery(tables, flowId, scope);
  const rows = await queryRows(db, tables, query, { entry: BATCHES_ENTRY });
  return rows.map((row) => ({
    batchId: row.batch_id === null ? null : Number(row.batch_id),
    kind: String(row.kind),
    after: String(row.after).split(', ').filter(Boolean).map(Number),
    cancels: row.cancels === true,
    firstId: Number(row.first_id),
    states: Object.fromEntries(
      STATES.flatMap((state) => (Number(row[state]) > 0 ? [[state, Number(row[state])]] : [])),
    ),
  }));
}

/** @crossesQueues the jobs of a flow may be in any queue */
export function findFlowGroupsQuery(tables: TablesOfBatches, flowId: number, scope: JobScope): SQL {
  const { queueJobs, queueResults, queueBatches, queueWaits } = tables;
  const bounds = FLOW_BOUNDS;
  const rest = (alias: 'j' | 'r') => sql.join(inScope(scope, alias).map((each) => sql` and ${each}`));
  const counts = STATES.map(
    (state) => sql`count(*) filter (where m.state = ${sql.raw(`'${state}'`)}) as ${sql.raw(state)}`,
  );
  // A full join is never a nested loop, which would compare each job with all waits.
  // A range of one id. Of an equality the planner may think that half of the table has it, and read all.
  return sql`
    with batches as materialized (
      select b.id from ${queueBatches} as b where b.flow_id = ${flowId}::int8
      order by b.id limit ${bounds.batches}::int4
    ),
    waits as materialized (
      select w.job_id, w.queue, string_agg(w.batch_id::text, ', ' order by w.batch_id) as after,
        bool_or(w.policy = 'cancel') as cancels
      from (
        select w.* from batches as b join ${queueWaits} as w on w.batch_id = b.id
        where w.policy in ('run', 'cancel') limit ${bounds.waits}::int4
      ) as w
      group by w.job_id, w.queue
    ),
    members as (
      select j.* from batches as b cross join lateral (
        select j.id, j.queue, j.kind, j.batch_id, ${liveState} as state from ${queueJobs} as j
        where j.batch_id between b.id and b.id${rest('j')}
        order by j.batch_id limit ${bounds.members}::int4
      ) as j
      union all
      select r.* from batches as b cross join lateral (
        select r.job_id, r.queue, r.kind, r.batch_id, r.state from ${queueResults} as r
        where r.batch_id between b.id and b.id${rest('r')}
        order by r.batch_id limit ${bounds.members}::int4
      ) as r
      union all
      select j.id, j.queue, j.kind, null::int8, ${liveState}
      from waits as w join ${queueJobs} as j on j.queue = w.queue and j.id = w.job_id
      where j.batch_id is null${rest('j')}
      union all
      select r.job_id, r.queue, r.kind, null::int8, r.state
      from waits as w join ${queueResults} as r on r.queue = w.queue and r.job_id = w.job_id
      where r.batch_id is null${rest('r')}
    )
    select m.batch_id, m.kind, coalesce(m.after, '') as after, coalesce(bool_or(m.cancels), false) as cancels,
      min(m.id) as first_id, ${sql.join(counts, sql`, `)}
    from (
      select m.*, w.after, w.cancels from (select * from members limit ${bounds.jobs}::int4) as m
      full join waits as w on w.job_id = m.id and w.queue = m.queue offset 0
    ) as m
    where m.id is not null
    group by m.batch_id, m.kind, coalesce(m.after, '')
    order by min(m.id) limit ${bounds.groups + 1}::int4`;
}
