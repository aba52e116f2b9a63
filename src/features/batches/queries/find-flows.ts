import { type SQL, sql } from 'drizzle-orm';
import { dateOf, epochMs } from '../../../core/sql/epoch-ms.ts';
import { queryRows, type RawRow, type Runner } from '../../../core/sql/executor.ts';
import { BATCHES_ENTRY, type TablesOfBatches } from '../sql/batch-tables.ts';
import type { FlowRecord } from './find-flow.ts';

/**
 * Where a flow stands. `open`: some of its jobs have not ended. `failed`: all have, and some were discarded
 * or cancelled. `completed`: all have, and none of them failed.
 */
export type FlowState = 'open' | 'failed' | 'completed';

/** A flow in a list. */
export interface ListedFlow extends FlowRecord {
  readonly state: FlowState;
  /** Kinds of its jobs, by which people know it: at most 20, and none once its jobs are pruned. */
  readonly kinds: readonly string[];
}

export interface FlowsToFind {
  /** @default undefined in any */
  readonly state: FlowState | undefined;
  /** Only flows with a smaller id. */
  readonly before: number | undefined;
  readonly limit: number;
  /** Looks at no more flows than these. */
  readonly searchLimit: number;
}

export interface FoundFlows {
  readonly flows: readonly ListedFlow[];
  /** The last flow that was looked at, where the search has ended at its limit. */
  readonly searchedTo: number | undefined;
}

/** Of how many of its batches a flow has the kind of one job. */
const KINDS = 20;

/** Flows by their ids, the newest first. **Under concurrency.** A plain read, so one snapshot. */
export async function findFlows(db: Runner, tables: TablesOfBatches, find: FlowsToFind): Promise<FoundFlows> {
  const rows = await queryRows(db, tables, findFlowsQuery(tables, find), { entry: BATCHES_ENTRY });
  const searchedTo = rows[0]?.searched_to ?? null;
  return {
    flows: rows.filter(({ id }) => id !== null).map(toListedFlow),
    searchedTo: searchedTo === null ? undefined : Number(searchedTo),
  };
}

function toListedFlow(row: RawRow): ListedFlow {
  const [pending, failed] = [Number(row.pending), Number(row.failed)];
  const endedAt = row.ended_at === null ? null : dateOf(row.ended_at);
  return {
    id: Number(row.id),
    state: endedAt === null ? 'open' : failed > 0 ? 'failed' : 'completed',
    // The statement makes an array of texts, or null.
    kinds: (row.kinds ?? []) as string[],
    total: Number(row.total),
    pending,
    failed,
    cancelReason: row.cancel_reason === null ? null : String(row.cancel_reason),
    createdAt: dateOf(row.created_at),
    endedAt,
  };
}

const IN_STATE: Readonly<Record<FlowState, SQL>> = {
  open: sql.raw(' and not c.ended'),
  failed: sql.raw(' and c.ended and c.failed > 0'),
  completed: sql.raw(' and c.ended and c.failed = 0'),
};

/**
 * From one flow to the next by the index, however many batches each has, and only until there are enough:
 * nothing sorts what `listed` yields, which comes in order.
 *
 * @crossesQueues the jobs of a flow may be in any queue
 */
export function findFlowsQuery(tables: TablesOfBatches, find: FlowsToFind): SQL {
  const { queueJobs, queueResults, queueBatches } = tables;
  const { state, before, limit, searchLimit } = find;
  // A range of one id. Of an equality the planner may think that half of the table has it, and read all.
  const kind = sql`coalesce(
            (select j.kind from ${queueJobs} as j
              where j.batch_id between b.id and b.id order by j.batch_id limit 1),
            (select r.kind from ${queueResults} as r
              where r.batch_id between b.id and b.id order by r.batch_id limit 1))`;
  return sql`
    with recursive listed as (
      (
        select b.flow_id as id, 1 as place from ${queueBatches} as b
        where ${before === undefined ? sql`b.flow_id is not null` : sql`b.flow_id < ${before}::int8`}
        order by b.flow_id desc limit 1
      )
      union all
      select (
          select b.flow_id from ${queueBatches} as b where b.flow_id < l.id order by b.flow_id desc limit 1
        ), l.place + 1
      from listed as l where l.id is not null and l.place < ${searchLimit}::int4
    ),
    found as materialized (
      select l.id, c.* from listed as l cross join lateral (
        select sum(b.total)::float8 as total, sum(b.pending)::float8 as pending,
          sum(b.failed)::float8 as failed, min(b.cancel_reason) as cancel_reason,
          min(b.created_at) as created_at, max(b.ended_at) as ended_at,
          bool_and(b.ended_at is not null) as ended
        from ${queueBatches} as b where b.flow_id = l.id
      ) as c
      where l.id is not null${state === undefined ? sql`` : IN_STATE[state]}
      limit ${limit}::int4
    )
    select s.searched_to, f.id, f.total, f.pending, f.failed, f.cancel_reason,
      ${epochMs('f.created_at')} as created_at,
      case when f.ended then ${epochMs('f.ended_at')} end as ended_at,
      (
        select jsonb_agg(k.kind order by k.first) from (
          select m.kind, min(m.id) as first from (
            select b.id, ${kind} as kind
            from ${queueBatches} as b where b.flow_id = f.id order by b.id limit ${KINDS}::int4
          ) as m where m.kind is not null group by m.kind
        ) as k
      ) as kinds
    from (
      select case when (select count(*) from found) < ${limit}::int4 then (
          select min(l.id) from listed as l having count(l.id) = ${searchLimit}::int4
        ) end as searched_to
    ) as s left join found as f on true
    order by f.id desc`;
}
