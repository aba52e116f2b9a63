import { type SQL, sql } from 'drizzle-orm';
import type { GroupClaim } from './group-claim.ts';
import type { GroupTables } from './grouping.ts';
import { rateWindow } from './rate-used.ts';

/** What is used of the rates of the queue and its kinds, locked: claims of one queue go one by one here. */
export function claimRates({ queueUsage, queueLimits }: GroupTables, { queue, limits }: GroupClaim): SQL {
  const declared = [
    ...(limits.queueRate === undefined ? [] : [['', limits.queueRate] as const]),
    ...limits.kindRates,
  ].map(([kind, { limit, perMs }]) => ({ kind, rate_limit: limit, rate_per_ms: perMs }));
  return sql`,
    usage as materialized (
      select u.kind, u.rate_used from ${queueUsage} as u
      where u.queue = ${queue} and u.kind in (
        select d.kind from jsonb_to_recordset(${JSON.stringify(declared)}::text::jsonb) as d(kind text))
      order by u.kind for no key update
    ),
    budgets as materialized (
      select d.kind, d.rate_limit, d.rate_per_ms, x.slot, x.oldest, x.kept,
        case when u.kind is null then 0 else d.rate_limit - x.used end as budget
      from (
        select d.kind, coalesce(l.rate_limit, d.rate_limit) as rate_limit,
          coalesce(l.rate_per_ms, d.rate_per_ms) as rate_per_ms
        from jsonb_to_recordset(${JSON.stringify(declared)}::text::jsonb)
          as d(kind text, rate_limit int4, rate_per_ms int8)
        left join ${queueLimits} as l on l.queue = ${queue} and l.kind = d.kind and l.group_key = ''
      ) as d
      left join usage as u on u.kind = d.kind
      cross join lateral ${rateWindow(sql`u.rate_used`, sql`d.rate_per_ms`)} as x
    )`;
}
