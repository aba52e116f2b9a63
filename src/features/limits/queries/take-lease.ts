import { type SQL, sql } from 'drizzle-orm';
import type { Runner } from '../../../core/sql/executor.ts';
import { lockPatience } from '../../../core/sql/row-locks.ts';
import type { LeaseTables } from '../sql/limit-tables.ts';
import { takeOfUsage } from './add-usage.ts';
import { type LeaseQuestion, type LeaseShare, shareOf } from './find-leases.ts';

/** What a worker wants of a limit. All numbers are slots. */
export interface LeaseWish extends LeaseQuestion {
  readonly workerId: number;
  /** How many handlers run; the lease becomes no smaller. */
  readonly running: number;
  /** How many it is to have. A smaller number than it has gives slots back; no others are taken away. */
  readonly want: number;
  /** How many it could use; others that have more than their share then let go of some. */
  readonly wants: number;
  /** Of two statements, the one of the later era holds, whichever of them comes first. */
  readonly era: number;
}

/** What a worker has after it asked, or gave back. */
export interface LeaseAnswer extends LeaseShare {
  /** Once it has given some back, or lacks none any more: a worker for each free slot, which may take it. */
  readonly successors: readonly number[];
}

/**
 * Takes, renews or gives back a worker's slots of one limit. Returns `undefined` when the worker is not
 * registered: it was declared gone, and has no slots.
 *
 * **Under concurrency.** The slots of all living workers together never exceed the limit, unless more
 * handlers run already: the row is locked before its newest version is read.
 * - The worker's own row is locked against its removal. So a lease in the row belongs to a worker that was
 *   alive when it was written. Removing a worker, in the statement that makes its jobs due, frees its slots
 *   without touching this table. A lease stops counting if its worker was gone in this statement's snapshot
 *   *and* the lease is unchanged since: a renewed lease belongs to a worker that has come back.
 * - A statement that was sent before a statement of a later era, but runs after it (its connection was lost
 *   while it waited), changes nothing.
 * - It waits at most 100 ms for locks, and then fails with 55P03.
 *
 * While other workers have less than their share and could use more, no worker gets more than its share. The
 * share is the limit divided by the number of workers that want slots, rounded up.
 *
 * The successors to what it gives back are those with the fewest slots. Of these, those behind the worker in
 * the order of the ids come first. They are as many as slots are free: one that has not asked yet may be
 * named once more. One that wants no more than it has leaves what is free to others in the same way.
 */
export async function takeLease(
  db: Runner,
  tables: LeaseTables,
  wish: LeaseWish,
): Promise<LeaseAnswer | undefined> {
  const query = takeLeaseQuery(tables, wish);
  const row = await takeOfUsage(db, tables, { limit: wish, query, taken: 'lease: taken' });
  if (row === undefined) return undefined;
  const successors = row.successors === null ? [] : String(row.successors).split(', ').map(Number);
  return { ...shareOf(row), successors };
}

/** @waitsOnCitus locks the rows of usage and of its worker, which no transaction of an app writes */
export function takeLeaseQuery(tables: LeaseTables, wish: LeaseWish): SQL {
  const { queueLimits, queueUsage, queueWorkers } = tables;
  const { queue, kind, running, want, wants, era } = wish;
  const worker = sql`${String(wish.workerId)}::text`;
  return sql`
    with worker as materialized (
      select w.id from ${queueWorkers} as w${lockPatience(tables, 'briefly')}
      where w.id = ${wish.workerId}::int8 for key share of w
    ),
    gone as materialized (
      select e.worker, e.lease from ${queueUsage} as u cross join jsonb_each(u.leases) as e(worker, lease)
      where u.queue = ${queue} and u.kind = ${kind}
        and e.worker not in (select w.id::text from ${queueWorkers} as w)
    ),
    locked as materialized (
      select u.leases from ${queueUsage} as u
      where u.queue = ${queue} and u.kind = ${kind} and (select count(*) from worker) > 0
      for no key update
    ),
    living as materialized (
      select e.worker, e.worker = ${worker} as own, (e.lease ->> 0)::int8 as has,
        (e.lease ->> 1)::int8 as wants, (e.lease ->> 2)::int8 as era
      from locked as l cross join jsonb_each(l.leases) as e(worker, lease)
      where (e.worker, e.lease) not in (select g.worker, g.lease from gone as g)
    ),
    shares as materialized (
      select coalesce(
          (select s.concurrency from ${queueLimits} as s
            where s.queue = ${queue} and s.kind = ${kind} and s.group_key = ''),
          ${wish.declared}::int4) as max,
        coalesce(max(v.has) filter (where v.own), 0) as own,
        coalesce(max(v.wants) filter (where v.own), 0) as own_wants,
        coalesce(max(v.era) filter (where v.own), 0) as era,
        coalesce(sum(v.has) filter (where not v.own), 0)::int8 as rest,
        count(*) filter (where not v.own and (v.has > 0 or v.wants > 0)) as others,
        min(v.has) filter (where not v.own and v.has < v.wants) as least_lacking
      from living as v
    ),
    decided as materialized (
      select s.*, s.others + (${wants}::int8 > 0 or ${want}::int8 > 0)::int4 as sharing, case
        when s.era > ${era}::int8 then s.own
        when s.max is null then ${running}::int8
        else greatest(${running}::int8, least(s.own, ${want}::int8), least(${want}::int8, s.max - s.rest,
          case when s.least_lacking < c.share then c.share::int8 end)) end as has
      from shares as s cross join lateral (select ceil(s.max::float8 / (s.others + 1)) as share) as c
    ),
    successors as materialized (
      select v.worker from living as v where not v.own and v.has < v.wants
      order by v.has, v.worker::int8 < ${wish.workerId}::int8, v.worker::int8
      limit (select case
          when d.own > d.has or (d.own_wants > d.has and ${wants}::int8 <= d.has)
            then greatest(d.max - d.rest - d.has, 0) else 0 end
        from decided as d)
    ),
    written as materialized (
      select l.leases as before, (l.leases - ${worker}
          - array(select e.worker from jsonb_each(l.leases) as e(worker, lease)
            where (e.worker, e.lease) in (select g.worker, g.lease from gone as g)))
        || case
          when d.era > ${era}::int8 then jsonb_build_object(${worker}, l.leases -> ${worker})
          when d.has > 0 or ${wants}::int8 > 0 or ${era}::int8 > 0
            then jsonb_build_object(${worker}, jsonb_build_array(d.has, ${wants}::int8, ${era}::int8))
          else '{}' end as leases
      from locked as l cross join decided as d
    ),
    changed as (
      update ${queueUsage} as u set leases = (select w.leases from written as w)
      where u.queue = ${queue} and u.kind = ${kind}
        and (select w.leases is distinct from w.before from written as w)
      returning 1
    )
    select (select count(*) from worker) > 0 as registered, (select count(*) from locked) > 0 as found,
      d.max::float8 as max, d.has::float8 as has, (d.rest + d.has)::float8 as total,
      d.sharing::float8 as sharing, d.least_lacking::float8 as least_lacking,
      (select string_agg(h.worker, ', ') from successors as h) as successors
    from decided as d`;
}
