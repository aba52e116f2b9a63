import { type SQL, sql } from 'drizzle-orm';
import { MAX_CLAIM_BYTES } from '../../../core/sql/claim-statement.ts';
import { payloadBytes } from '../../../core/sql/payload-bytes.ts';
import { isNotAmong, servedKindOf } from '../../../core/sql/served-kind.ts';
import { dueInGroup, isDue, nextInGroup } from './due-in-group.ts';
import type { GroupClaimPlace, GroupClaimShape } from './group-claim.ts';
import type { GroupTables } from './limit-tables.ts';
import { rateFreeAt, rateWith } from './rate-used.ts';

/** How many locked jobs a group's claim looks past. */
const LOOK_PAST = 100;
/** So long after a group was first bounded, ends may be under way that leave no note: claims look again. */
const UNNOTED_MS = 1_000;

/**
 * `within`: the jobs to claim, in their order, and `turning`: what becomes of the groups. One that only time
 * can open (its next job is scheduled, a hold ends then) is looked at again at that time: this statement may
 * be older than what it sees, and the note for that time used up already. `taken` are those of the jobs whose
 * group no other claim has made before (`beaten`). What there is no room for is passed over, where a group
 * keeps no order. None joins CTEs with each other: Postgres expects as few groups as there were at the last
 * ANALYZE, so it would compare all with all.
 */
export function jobsOfGroups(
  tables: GroupTables,
  { serial, rated, bounded, without }: GroupClaimShape,
  place: GroupClaimPlace,
): SQL {
  const { queueJobs, queueGroups } = tables;
  const queue = place('queue');
  const isServed = servedKindOf(place('kinds'));
  const group = sql`c.group_key`;
  const next = (most: SQL, and?: SQL) => dueInGroup(tables, { queue, group, and }, most);
  const notLeftOut = without
    ? sql`
            and ${isNotAmong(place('without'))}`
    : sql``;
  // A worker that is taken for gone by mistake still runs what it holds: that is for others.
  const lock = sql`
          select j.id, j.kind, coalesce(j.weight, 1)::int8 as weight, ${payloadBytes} as bytes
          from ${queueJobs} as j
          where j.ctid = k.at and j.id = k.id and j.queue = ${queue} and j.group_key = ${group}
            and ${isDue(tables, isServed)}
            and j.worker_id is distinct from ${place('workerId')}::int8${notLeftOut}
          for no key update skip locked`;
  // What a lower limit was set for may have been used up before.
  const most = rated ? sql`greatest(least(c.room, c.budget), 0)` : sql`greatest(c.room, 0)`;
  // One after the other: none before the one that another transaction has locked, or that others serve.
  const takeInOrder = sql`
        select f.*, k.n from (
          select k.id, k.at, row_number() over () as n from (${next(most)}) as k
        ) as k
        left join lateral (${lock}) as f on true`;
  const take = sql`
        select f.*, row_number() over () as n from (
          select f.* from (${next(sql`${most} + c.held + ${sql.raw(String(LOOK_PAST))}`, isServed)}) as k
          cross join lateral (${lock}) as f
          limit ${most}
        ) as f`;
  // LEAST passes over a null: that of a job which may not be taken.
  const cut = sql`sum(case when j.id is not null then least(j.weight, c.rate_limit) end)
          over (partition by c.group_key order by j.n) > c.budget`;
  const unnoted = sql.raw(`${UNNOTED_MS} * interval '1 millisecond'`);
  const ofRate = (columns: SQL) => (rated ? columns : sql``);
  const inOrder = (text: SQL) => (serial ? text : sql``);
  const allowed = sql`found as f${ofRate(sql` where not f.cut`)}`;
  const fitting = sql`(
        select f.*, row_number() over (partition by f.kind order by f.place, f.n) <= coalesce(
            (${place('rooms')}::text::jsonb ->> f.kind)::int8, ${place('limit')}::int8
          ) as fits
        from ${allowed}
      ) as f${serial ? sql`` : sql` where f.fits`}`;
  const takes = bounded ? sql`f.id is not null and f.fits` : sql`f.id is not null`;
  const rateUsed = rated
    ? sql`case when c.rate_limit is null then c.kept
          else ${rateWith(sql`c.kept`, sql`c.slot`, sql`coalesce(c.taken_cost, 0)`)} end`
    : sql`c.kept`;
  const and = sql`j.id not in (select id from within)`;
  return sql`found as materialized (
      select c.place, c.group_key, j.*${ofRate(sql`, c.rate_per_ms, least(j.weight, c.rate_limit) as cost,
        coalesce(${cut}, false) as cut`)}
      from open as c cross join lateral (${serial ? takeInOrder : take}
      ) as j
      where c.room > 0
    ),
    wanted as not materialized (
      select f.*, row_number() over (order by f.place, f.n) as rank${inOrder(sql`,
        bool_and(${takes}) over (partition by f.group_key order by f.n) as unbroken`)}
      from ${bounded ? fitting : allowed}
    ),
    within as materialized (
      select id, place, group_key, weight${ofRate(sql`, cost, rate_per_ms`)}, rank from (
        select w.*,
          sum(w.bytes) over (order by w.rank rows between unbounded preceding and 1 preceding) as before
        from wanted as w${inOrder(sql`
        where w.unbroken`)}
      ) as w
      where before is null or before < ${MAX_CLAIM_BYTES}::int8
      order by rank
    ),
    turning as materialized (
      select c.at, c.group_key, case
          when c.standing is null then coalesce(c.taken_ids, '{}')
          else array(select distinct unnest(c.standing || c.taken_ids))
        end as held, 1 + greatest(c.turn, r.turn)
          + greatest(coalesce(c.taken_weight, 0), 1) * 1000 / c.share_of as turn,
        case when c.concurrency is not null then coalesce(c.bounded_since, statement_timestamp())
          end as bounded_since,
        ${rateUsed} as rate_used,
        case
          when c.held + c.taken >= c.concurrency${inOrder(sql` or c.held > 0`)}
            then least(c.held_until, case
              when c.bounded_since < statement_timestamp() - ${unnoted} then 'infinity'
              else statement_timestamp() + ${unnoted} end)
          ${ofRate(sql`when c.budget <= coalesce(c.taken_cost, 0) or c.cut_by_group
            then ${rateFreeAt(sql`coalesce(c.oldest, c.slot)`, sql`c.rate_per_ms`)}
          `)}when c.taken < c.room then ${nextInGroup(tables, { queue, group, and })}
          else '-infinity'
        end as ready_at
      from (
        select o.*, count(o.job_id) over jobs as taken,
          array_agg(o.job_id) filter (where o.job_id is not null) over jobs as taken_ids,
          sum(o.weight) over jobs as taken_weight${ofRate(sql`,
          sum(o.cost) over jobs as taken_cost,
          bool_or(o.cut) over jobs and not bool_or(o.spared) over jobs as cut_by_group`)}
        from (
          select place, at, group_key, turn, share_of, concurrency, rate_limit, kept, held, held_until,
            standing, bounded_since, room, null as job_id, null as weight${ofRate(sql`, rate_per_ms, slot,
            oldest, budget, null as cost, false as cut, false as spared`)}
          from open
          union all
          select place, null, null, null, null, null, null, null, null, null, null, null, null, id,
            weight${ofRate(sql`, null, null, null, null, cost, false, false`)}
          from within${ofRate(sql`
          union all
          select place, null, null, null, null, null, null, null, null, null, null, null, null, null,
            null, null, null, null, null, null, cut, not cut
          from found where cut or id is null or id not in (select id from within)`)}
        ) as o
        window jobs as (partition by o.place)
      ) as c cross join ring as r
      where c.group_key is not null
    ),
    made as (
      insert into ${queueGroups} (queue, group_key, ready_at, turn, rate_used, held, bounded_since)
      select ${queue}::text, t.group_key, t.ready_at, t.turn, t.rate_used, t.held, t.bounded_since
      from turning as t
      where t.at is null order by t.group_key
      on conflict (queue, group_key) do nothing
      returning group_key
    ),
    beaten as materialized (
      select t.group_key from turning as t
      where t.at is null and t.group_key not in (select group_key from made)
    ),
    taken as materialized (
      select w.id, w.group_key, w.rank${ofRate(sql`, w.rate_per_ms`)} from within as w
      where w.group_key not in (select group_key from beaten)
    )`;
}
