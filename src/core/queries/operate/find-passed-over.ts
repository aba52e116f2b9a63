import { type SQL, sql } from 'drizzle-orm';
import type { QueueTables } from '../../schema/create-queue-tables.ts';
import { allBands, areWhole } from '../../sql/all-bands.ts';
import { msBetween, msOf } from '../../sql/epoch-ms.ts';
import { queryRows, type Runner } from '../../sql/executor.ts';
import { isClaimRefused } from '../../sql/refused-claim.ts';
import { throughIndex } from '../../sql/through-index.ts';

/** Jobs of one priority of one queue that workers leave out, or may leave out. */
export interface PassedOver {
  readonly queue: string;
  /** How many are parked, because the database refused their claims, and the first of them. */
  readonly parked: number;
  readonly parkedId: number | undefined;
  /** The job that has been due for longest. */
  readonly head: { readonly id: number; readonly kind: string; readonly dueMs: number } | undefined;
  /** Whether a worker holds a job of this priority that became due a minute after that one, or later. */
  readonly isOvertaken: boolean;
  /** Whether a worker holds one of the first jobs of this priority. */
  readonly isServed: boolean;
}

export interface FoundPassedOver {
  readonly bands: readonly PassedOver[];
  /** Whether there are no more. */
  readonly areAll: boolean;
}

/** How many jobs behind the head are looked at, and how many that are parked. */
const LOOK = sql.raw('1000');

/**
 * Looks for jobs that claims pass over: those that are parked because the database refused their claims, and
 * due ones that others have overtaken. Jobs of groups are left out, except for those that are parked.
 *
 * **Under concurrency.** A plain read of one snapshot, by the indexes of the claims.
 */
export async function findPassedOver(
  db: Runner,
  tables: QueueTables,
  limit: number,
): Promise<FoundPassedOver> {
  const rows = await queryRows(db, tables, findPassedOverQuery(tables, limit));
  const bands = rows.map((row) => ({
    queue: String(row.queue),
    parked: Number(row.parked ?? 0),
    parkedId: row.parked_id === null ? undefined : Number(row.parked_id),
    head:
      row.id === null
        ? undefined
        : { id: Number(row.id), kind: String(row.kind), dueMs: msOf(row.due_ms ?? 0) },
    isOvertaken: row.overtaken === true,
    isServed: row.served === true,
  }));
  return { bands, areAll: areWhole(rows, limit) };
}

/**
 * @crossesQueues finds the queues, by an index that leads from one to the next
 * @insteadOnCitus findPassedOverInShardsQuery
 */
export function findPassedOverQuery(tables: QueueTables, limit: number): SQL {
  const { queueJobs } = tables;
  const plain = throughIndex(sql.raw('j.group_key is null'));
  const inBand = sql`j.priority = b.priority and j.queue = b.queue and ${plain}`;
  return sql`
    ${allBands(tables)}
    (
      select 1 as list, b.queue, p.parked, p.parked_id, h.id, h.kind, h.due_ms, n.overtaken, n.served
      from (select * from band limit ${limit}) as b
      cross join lateral (
        select count(*)::float8 as parked, min(j.id) as parked_id from (
          select j.id, ${isClaimRefused} as refused from ${queueJobs} as j
          where ${inBand} and j.run_at = 'infinity'
          order by j.run_at, j.id limit ${LOOK}
        ) as j where j.refused
      ) as p
      left join lateral (
        select j.id, j.kind, j.run_at,
          ${msBetween('j.run_at', 'statement_timestamp()')} as due_ms
        from ${queueJobs} as j
        where ${inBand} and j.run_at <= statement_timestamp() and j.worker_id is null
        order by j.run_at, j.id limit 1
      ) as h on true
      cross join lateral (
        select bool_or(j.worker_id is not null and j.run_at > h.run_at + interval '1 minute') as overtaken,
          bool_or(j.worker_id is not null) as served
        from (
          select j.run_at, j.worker_id from ${queueJobs} as j
          where ${inBand} and j.run_at <= statement_timestamp()
          order by j.run_at, j.id limit ${LOOK}
        ) as j
      ) as n
    )
    union all
    (
      select 3, g.queue, p.parked, p.parked_id, null, null, null, null, null
      from (select * from grouped limit ${limit}) as g
      cross join lateral (
        select count(*)::float8 as parked, min(j.id) as parked_id from (
          select j.id, ${isClaimRefused} as refused from ${queueJobs} as j
          where j.queue = g.queue and j.group_key is not null limit ${LOOK}
        ) as j where j.refused
      ) as p
    )`;
}
