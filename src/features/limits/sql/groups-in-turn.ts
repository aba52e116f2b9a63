import { type SQL, sql } from 'drizzle-orm';
import { planAnew } from '../../../core/sql/plan-anew.ts';
import { isNotAmong, servedKindOf } from '../../../core/sql/served-kind.ts';
import { isOf } from '../../../core/sql/table-size.ts';
import { hasJobsFor, isDueInGroup } from './due-in-group.ts';
import type { GroupClaimPlace, GroupClaimShape } from './group-claim.ts';
import { isUpheld } from './group-rows.ts';
import type { GroupTables } from './limit-tables.ts';
import { nextNotes } from './note-groups.ts';
import { rateWindow } from './rate-used.ts';
import { startWithin } from './start-time.ts';

/** The most groups of each lane among which a claim seeks some with jobs for it. */
export const MOST_SOUGHT = 10_000;

/** The most groups whose notes a claim reads. */
export function notesRead(place: GroupClaimPlace): SQL {
  return sql`${place('groups')}::int8 + 8`;
}

/**
 * Locks the groups whose turn it is, in two lanes that take turns: the ring, by turn, and groups that were
 * idle, by how long they have been ready. Groups that are noted and in neither (`idle`) stand in the ring if
 * they have had their turn already, or else among those that were idle. One that is new has no row. One in
 * which nothing is due is left alone.
 *
 * `open`: their shares of this claim, and the room that their limits leave, in jobs and in costs.
 * `held_until`: when the first of the holds that end by themselves does. `bounded_since`: since when the ends
 * of its jobs leave notes, as all of them will where the group is new. `standing`: which jobs are still held.
 * Those of a worker that is gone are among them: they count again if it comes back. A row is locked where the
 * look has found it (`at`): its `turn` says whether it is still as it was. `kept`: what is used of its rate;
 * as it was where this claim knows of none, for a process that does. Where it takes no jobs of groups with a
 * rate, these have no room. The first always has a share of one at least: rounded to none, small claims would
 * pass it over for ever.
 */
export function groupsInTurn(tables: GroupTables, shape: GroupClaimShape, place: GroupClaimPlace): SQL {
  const { serial, rated, without, seeks, ifTablesAre } = shape;
  const { queueJobs, queueGroups, queueHolds, queueLimits, queueWorkers } = tables;
  const queue = place('queue');
  const limit = place('limit');
  const ofSize = ifTablesAre ? sql` and ${isOf(ifTablesAre)}` : sql``;
  const anew = ifTablesAre ? sql`` : sql` from ${planAnew()}`;
  const inRing = sql`g.queue = ${queue} and g.turn >= 0`;
  const most = notesRead(place);
  const mostInRing = sql`${place('groups')}::int8 * 2 + 32`;
  const isServed = servedKindOf(place('kinds'));
  const jobsFor = (group: SQL) =>
    hasJobsFor(tables, {
      queue,
      group,
      serial,
      isTaken: without ? sql`${isServed} and ${isNotAmong(place('without'))}` : isServed,
    });
  const nextGroups = (columns: SQL, where: SQL, limit: SQL) => {
    const next = (limit: SQL) => sql`select g.ctid as at, g.group_key, ${columns} from ${queueGroups} as g
            where ${inRing} and ${where} limit (select ${limit})`;
    if (!seeks) return next(limit);
    return sql`select g.* from (
            ${next(sql`${sql.raw(String(MOST_SOUGHT))}${anew}`)} offset ${place('passed')}::int8
            ) as g
            where ${jobsFor(sql`g.group_key`)} limit (select ${limit})`;
  };
  const noted = seeks ? sql`i.waits and i.fits` : sql`i.waits`;
  const fits = seeks ? sql`, ${jobsFor(sql`k.group_key`)} as fits` : sql``;
  const waits = isDueInGroup(tables, { queue, group: sql`k.group_key` });
  const ratePerMs = sql`l.rate_per_ms`;
  const within = startWithin(ratePerMs, place('neededMs'), place('stretch'));
  const used = rated
    ? sql`
      left join lateral (
        select u.* from ${rateWindow(sql`l.rate_used`, ratePerMs, within)} as u
        where l.rate_per_ms is not null offset 0
      ) as u on true`
    : sql``;
  const usedColumns = rated
    ? sql`u.slot, u.used, u.oldest, coalesce(u.kept, l.rate_used) as kept`
    : sql`l.rate_used as kept`;
  const concurrency = serial
    ? sql`1`
    : sql`coalesce(o.concurrency, e.concurrency, ${place('concurrency')}::int4)`;
  const room = serial
    ? sql`case when c.held > 0 then 0 else least(c.share, ${place('run')}::int8) end`
    : sql`least(c.share, c.concurrency - c.held)`;
  const roomColumns = rated
    ? sql`${room} as room, c.rate_limit - c.used as budget`
    : sql`case when c.rate_limit is null then ${room} else 0 end as room`;
  return sql`free as materialized (${nextNotes(tables, { queue, most, and: ofSize })}
    ),
    asked as materialized (
      select n.group_key, min(n.due_at) as due_at
      from (select n.due_at, unnest(n.group_keys) as group_key from free as n) as n
      group by n.group_key
    ),
    idle as materialized (
      select k.*, k.at is null or ${waits} as waits${fits}
      from (
        select a.group_key, a.due_at, g.at, g.turn, g.ready_at from asked as a left join lateral (
          select g.ctid as at, g.turn, g.ready_at from ${queueGroups} as g
          where g.queue = ${queue} and g.group_key = a.group_key
          offset 0
        ) as g on true
      ) as k
      where k.at is null or k.ready_at > statement_timestamp()
    ),
    ring as materialized (
      select r.turn as first, coalesce(r.turn, (
        select g.turn from ${queueGroups} as g
        where ${inRing} and g.ready_at = 'infinity'${ofSize} order by g.turn desc limit 1
      ), 0) as turn
      from (select (
        select g.turn from ${queueGroups} as g
        where ${inRing} and g.ready_at = '-infinity'${ofSize} order by g.turn limit 1
      ) as turn) as r
    ),
    seen as materialized (
      (select g.*, row_number() over (order by g.turn) * 2 + ${place('ringLead')}::int8 as place
        from (
          (${nextGroups(
            sql`g.turn`,
            sql`g.ready_at = '-infinity'${ofSize}
            order by g.turn`,
            sql`${mostInRing}${anew}`,
          )})
          union all
          select i.at, i.group_key, i.turn from idle as i cross join ring as r
          where ${noted} and i.turn > coalesce(r.first, 0)
        ) as g
        order by g.turn limit (select ${mostInRing}))
      union all
      (select g.at, g.group_key, g.turn, row_number() over (order by g.ready_at) * 2 as place
        from (
          (${nextGroups(
            sql`g.turn, g.ready_at`,
            sql`g.ready_at > '-infinity' and g.ready_at <= statement_timestamp()${ofSize}
            order by g.ready_at`,
            most,
          )})
          union all
          select i.at, i.group_key, coalesce(i.turn, 0), i.due_at from idle as i cross join ring as r
          where ${noted} and (i.turn > coalesce(r.first, 0)) is not true
        ) as g
        order by g.ready_at limit (select ${most}))
    ),
    every as materialized (
      select max(l.concurrency) as concurrency, max(l.rate_limit) as rate_limit,
        max(l.rate_per_ms) as rate_per_ms, max(l.weight) as weight
      from ${queueLimits} as l where l.queue = ${queue} and l.kind = '' and l.group_key = '*'
    ),
    locked as materialized (
      select s.place, s.at, s.group_key, coalesce(g.turn, 0) as turn,
        coalesce(g.rate_used, '{}') as rate_used, coalesce(g.held, '{}') as held,
        case when s.at is null then '-infinity' else g.bounded_since end as bounded_since
      from (select * from seen order by place) as s left join lateral (
        select g.turn, g.rate_used, g.held, g.bounded_since from ${queueGroups} as g
        where g.ctid = s.at and g.queue = ${queue} and g.group_key = s.group_key and g.turn = s.turn
        for no key update skip locked
      ) as g on true
      where s.at is null or g.turn is not null
      limit (select ${place('groups')}::int8)
    ),
    ruled as not materialized (
      select l.*, coalesce(o.weight, e.weight, 1) as share_of,
        ${concurrency} as concurrency,
        coalesce(o.rate_limit, e.rate_limit, ${place('rateLimit')}::int4) as rate_limit,
        coalesce(o.rate_per_ms, e.rate_per_ms, ${place('ratePerMs')}::int8) as rate_per_ms
      from locked as l cross join every as e left join ${queueLimits} as o
        on o.queue = ${queue} and o.kind = '' and o.group_key = l.group_key
    ),
    blocking as materialized (
      select h.group_key, case when ${isUpheld(tables)} then h.until else '-infinity' end as until
      from ${queueHolds} as h
      where h.queue = ${queue} and h.group_key = any(array(select group_key from locked))
    ),
    counted as not materialized (
      select l.place, l.at, l.group_key, l.turn, l.share_of, l.concurrency, l.rate_limit, l.rate_per_ms,
        ${usedColumns}, h.standing, l.bounded_since,
        h.held + b.going_on + b.waits::int4 as held, b.until as held_until,
        (ceil(${limit}::float8 * sum(l.share_of) over w / sum(l.share_of) over ())
          - ceil(${limit}::float8 * (sum(l.share_of) over w - l.share_of) / sum(l.share_of) over ()))::int8
          as share
      from ruled as l${used}
      cross join lateral (
        select count(*) filter (where j.worker_id in (select w.id from ${queueWorkers} as w)) as held,
          array_agg(j.id) filter (where j.worker_id is not null) as standing
        from ${queueJobs} as j where j.queue = ${queue} and j.id = any(l.held)
      ) as h
      cross join lateral (
        select min(h.until) as until, count(h.worker_id) as going_on, count(*) > count(h.worker_id) as waits
        from ${queueHolds} as h
        where h.queue = ${queue} and h.group_key = l.group_key and h.until > statement_timestamp()
          and ${isUpheld(tables)}
          and l.group_key in (select b.group_key from blocking as b)
      ) as b
      window w as (order by l.place rows unbounded preceding)
    ),
    open as materialized (
      select c.*, ${roomColumns}
      from counted as c where c.share > 0
    )`;
}

/** Whether there may be groups behind those among which a claim seeks: both lanes count as one. */
export function areUnsought({ queueGroups }: GroupTables, place: GroupClaimPlace): SQL {
  return sql`exists (
          select from ${queueGroups} as g
          where g.queue = ${place('queue')} and g.turn >= 0 and g.ready_at <= statement_timestamp()
          offset ${place('passed')}::int8 + ${sql.raw(String(MOST_SOUGHT))}
        )`;
}
