    with worker as materialized (
      select w.id from "queue_workers" as w cross join set_config('lock_timeout', $1::text, true) as patience
      where w.id = $2::int8 for key share of w
    ),
    gone as materialized (
      select e.worker, e.lease from "queue_usage" as u cross join jsonb_each(u.leases) as e(worker, lease)
      where u.queue = $3 and u.kind = $4
        and e.worker not in (select w.id::text from "queue_workers" as w)
    ),
    locked as materialized (
      select u.leases from "queue_usage" as u
      where u.queue = $5 and u.kind = $6 and (select count(*) from worker) > 0
      for no key update
    ),
    living as materialized (
      select e.worker, e.worker = $7::text as own, (e.lease ->> 0)::int8 as has,
        (e.lease ->> 1)::int8 as wants, (e.lease ->> 2)::int8 as era
      from locked as l cross join jsonb_each(l.leases) as e(worker, lease)
      where (e.worker, e.lease) not in (select g.worker, g.lease from gone as g)
    ),
    shares as materialized (
      select coalesce(
          (select s.concurrency from "queue_limits" as s
            where s.queue = $8 and s.kind = $9 and s.group_key = ''),
          $10::int4) as max,
        coalesce(max(v.has) filter (where v.own), 0) as own,
        coalesce(max(v.wants) filter (where v.own), 0) as own_wants,
        coalesce(max(v.era) filter (where v.own), 0) as era,
        coalesce(sum(v.has) filter (where not v.own), 0)::int8 as rest,
        count(*) filter (where not v.own and (v.has > 0 or v.wants > 0)) as others,
        min(v.has) filter (where not v.own and v.has < v.wants) as least_lacking
      from living as v
    ),
    decided as materialized (
      select s.*, s.others + ($11::int8 > 0 or $12::int8 > 0)::int4 as sharing, case
        when s.era > $13::int8 then s.own
        when s.max is null then $14::int8
        else greatest($15::int8, least(s.own, $16::int8), least($17::int8, s.max - s.rest,
          case when s.least_lacking < c.share then c.share::int8 end)) end as has
      from shares as s cross join lateral (select ceil(s.max::float8 / (s.others + 1)) as share) as c
    ),
    successors as materialized (
      select v.worker from living as v where not v.own and v.has < v.wants
      order by v.has, v.worker::int8 < $18::int8, v.worker::int8
      limit (select case
          when d.own > d.has or (d.own_wants > d.has and $19::int8 <= d.has)
            then greatest(d.max - d.rest - d.has, 0) else 0 end
        from decided as d)
    ),
    written as materialized (
      select l.leases as before, (l.leases - $20::text
          - array(select e.worker from jsonb_each(l.leases) as e(worker, lease)
            where (e.worker, e.lease) in (select g.worker, g.lease from gone as g)))
        || case
          when d.era > $21::int8 then jsonb_build_object($22::text, l.leases -> $23::text)
          when d.has > 0 or $24::int8 > 0 or $25::int8 > 0
            then jsonb_build_object($26::text, jsonb_build_array(d.has, $27::int8, $28::int8))
          else '{}' end as leases
      from locked as l cross join decided as d
    ),
    changed as (
      update "queue_usage" as u set leases = (select w.leases from written as w)
      where u.queue = $29 and u.kind = $30
        and (select w.leases is distinct from w.before from written as w)
      returning 1
    )
    select (select count(*) from worker) > 0 as registered, (select count(*) from locked) > 0 as found,
      d.max::float8 as max, d.has::float8 as has, (d.rest + d.has)::float8 as total,
      d.sharing::float8 as sharing, d.least_lacking::float8 as least_lacking,
      (select string_agg(h.worker, ', ') from successors as h) as successors
    from decided as d
-- $1 = "100ms"
-- $2 = 42
-- $3 = "mail"
-- $4 = "mail"
-- $5 = "mail"
-- $6 = "mail"
-- $7 = "42"
-- $8 = "mail"
-- $9 = "mail"
-- $10 = 10
-- $11 = 4
-- $12 = 3
-- $13 = 0
-- $14 = 2
-- $15 = 2
-- $16 = 3
-- $17 = 3
-- $18 = 42
-- $19 = 4
-- $20 = "42"
-- $21 = 0
-- $22 = "42"
-- $23 = "42"
-- $24 = 4
-- $25 = 0
-- $26 = "42"
-- $27 = 4
-- $28 = 0
-- $29 = "mail"
-- $30 = "mail"
