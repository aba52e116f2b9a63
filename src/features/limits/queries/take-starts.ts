import { type SQL, sql } from 'drizzle-orm';
import type { Runner } from '../../../core/sql/executor.ts';
import { lockPatience } from '../../../core/sql/row-locks.ts';
import type { Rate } from '../settings/limit-settings.ts';
import type { LeasedLimit, LeaseTables } from '../sql/limit-tables.ts';
import { rateWindow, rateWith } from '../sql/rate-used.ts';
import { takeOfUsage } from './add-usage.ts';

/** A rate that a worker keeps to. */
export interface RateQuestion extends LeasedLimit {
  /** What the code declares. What was set at run time goes first. */
  readonly declared: Rate;
}

/** What a worker wants of a rate. All numbers are starts, which are what jobs cost. */
export interface StartsWish extends RateQuestion {
  readonly workerId: number;
  /** The most to take. */
  readonly want: number;
  /** Fewer than these are of no use: then it takes none. One above the limit counts as the limit. */
  readonly least: number;
  /** How long after it has sent the statement the worker may spend them. */
  readonly withinMs: number;
  /** Starts that were not spent, by the `part` of the grant that they are of. */
  readonly unspent: Readonly<Record<string, number>>;
}

/** What a worker got of a rate. */
export interface StartsGrant {
  /** The rate, as it is now. */
  readonly rate: Rate;
  readonly granted: number;
  /** Names the part of the window in which they count. */
  readonly part: string;
  /** How many more are free. */
  readonly left: number;
  /** In how many milliseconds at least one more, or the `least` that were asked for, will be free. */
  readonly freeInMs: number;
  /** How many will be free then. */
  readonly freeThen: number;
}

/**
 * Takes starts of a rate, and gives back those that were not spent. Returns `undefined` when the worker is
 * not registered.
 *
 * **Under concurrency.** No window of the rate's length ever sees more starts than the limit, if each worker
 * spends its own in time: the row is locked before its newest version is read, so workers take one after the
 * other. Starts are counted as they are taken. Those of a worker that dies, or that never gets the answer,
 * are lost, and are free again after a window. It waits 100 ms at most for locks, and then fails with 55P03.
 *
 * Unspent starts must be given back only once, and not be spent afterwards, whatever becomes of the answer.
 */
export async function takeStarts(
  db: Runner,
  tables: LeaseTables,
  wish: StartsWish,
): Promise<StartsGrant | undefined> {
  const query = takeStartsQuery(tables, wish);
  const row = await takeOfUsage(db, tables, { limit: wish, query, taken: 'starts: taken' });
  if (row === undefined) return undefined;
  return {
    rate: { limit: Number(row.max), perMs: Number(row.per_ms) },
    granted: Number(row.granted),
    part: String(row.part),
    left: Number(row.max) - Number(row.used),
    freeInMs: Number(row.free_in_ms ?? 0),
    freeThen: Number(row.free_then ?? 0),
  };
}

/** @waitsOnCitus locks the rows of usage and of its worker, which no transaction of an app writes */
export function takeStartsQuery(
  tables: LeaseTables,
  { queue, kind, workerId, declared, want, least, withinMs, unspent }: StartsWish,
): SQL {
  const { queueLimits, queueUsage, queueWorkers } = tables;
  return sql`
    with worker as materialized (
      select w.id from ${queueWorkers} as w${lockPatience(tables, 'briefly')} where w.id = ${workerId}::int8
    ),
    locked as materialized (
      select u.rate_used from ${queueUsage} as u
      where u.queue = ${queue} and u.kind = ${kind} and (select count(*) from worker) > 0
      for no key update
    ),
    rates as materialized (
      select coalesce(max(s.rate_limit), ${declared.limit}::int4) as max,
        coalesce(max(s.rate_per_ms), ${declared.perMs}::int8) as per_ms
      from ${queueLimits} as s where s.queue = ${queue} and s.kind = ${kind} and s.group_key = ''
    ),
    counted as materialized (
      select r.max, r.per_ms, x.now, x.slot, x.used, x.kept
      from (
        select coalesce(jsonb_object_agg(
            e.part, greatest(0, e.n::int8 - coalesce((b.unspent ->> e.part)::int8, 0))
          ), '{}') as rate_used
        from locked as l cross join (select ${JSON.stringify(unspent)}::text::jsonb as unspent) as b
        cross join jsonb_each_text(l.rate_used) as e(part, n)
      ) as l
      cross join rates as r
      cross join lateral ${rateWindow(sql`l.rate_used`, sql`r.per_ms`, sql`${withinMs}::float8`)} as x
    ),
    granted as materialized (
      select c.*, case when c.max - c.used >= least(${least}::int8, c.max)
        then greatest(0, least(${want}::int8, c.max - c.used)) else 0 end as n
      from counted as c
    ),
    taken as materialized (
      select g.*, ${rateWith(sql`g.kept`, sql`g.slot`, sql`g.n`)} as rate_used from granted as g
    ),
    written as (
      update ${queueUsage} as u set rate_used = (select t.rate_used from taken as t)
      where u.queue = ${queue} and u.kind = ${kind} and (select count(*) from locked) > 0
        and (select t.rate_used from taken as t) is distinct from u.rate_used
      returning 1
    ),
    passing as materialized (
      select e.part::int8 as part, t.max - t.used - t.n + sum(e.n::int8) over (order by e.part::int8) as free
      from taken as t cross join jsonb_each_text(t.rate_used) as e(part, n)
    )
    select (select count(*) from worker) > 0 as registered, (select count(*) from locked) > 0 as found,
      t.max::float8 as max, t.per_ms::float8 as per_ms, t.n::float8 as granted, t.slot::text as part,
      (t.used + t.n)::float8 as used, (p.part + t.per_ms - t.now)::float8 as free_in_ms,
      p.free::float8 as free_then
    from taken as t left join lateral (
      select p.part, p.free from passing as p
      where p.free >= least(${least}::int8, t.max) and p.free > t.max - t.used - t.n
      order by p.part limit 1
    ) as p on true`;
}
