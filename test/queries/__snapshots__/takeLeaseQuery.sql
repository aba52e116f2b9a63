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
      select e.worker, (e.lease ->> 0)::int8 as has, (e.lease ->> 1)::int8 as wants,
        (e.lease ->> 2)::int8 as era
      from locked as l cross join jsonb_each(l.leases) as e(worker, lease)
      where (e.worker, e.lease) not in (select g.worker, g.lease from gone as g)
    ),
    own as materialized (
      select coalesce(max(v.has), 0) as has, coalesce(max(v.wants), 0) as wants,
        coalesce(max(v.era), 0) as era
      from living as v where v.worker = $7::text
    ),
    rest as materialized (
      select coalesce(sum(v.has), 0)::int8 as has,
        count(*) filter (where v.has > 0 or v.wants > 0) as sharing,
        min(v.has) filter (where v.has < v.wants) as least_lacking
      from living as v where v.worker <> $8::text
    ),
    limits as materialized (
      select coalesce(
        (select s.concurrency from "queue_limits" as s
          where s.queue = $9 and s.kind = $10 and s.group_key = ''),
        $11::int4) as max
    ),
    shares as materialized (
      select m.max, r.has as rest, r.least_lacking, o.has as own, o.wants as own_wants, o.era, r.sharing
          + ($12::int8 > 0 or $13::int8 > 0)::int4 as sharing,
        ceil(m.max::float8 / (r.sharing + 1)) as share
      from limits as m cross join rest as r cross join own as o
    ),
    decided as materialized (
      select s.*, case
        when s.era > $14::int8 then s.own
        when s.max is null then $15::int8
        else greatest($16::int8, least(s.own, $17::int8), least($18::int8, s.max - s.rest,
          case when s.least_lacking < s.share then s.share::int8 end)) end as has
      from shares as s
    ),
    successors as materialized (
      select v.worker from living as v where v.worker <> $19::text and v.has < v.wants
      order by v.has, v.worker::int8 < $20::int8, v.worker::int8
      limit (select case
          when d.own > d.has or (d.own_wants > d.has and $21::int8 <= d.has)
            then greatest(d.max - d.rest - d.has, 0) else 0 end
        from decided as d)
    ),
    written as materialized (
      select l.leases as before, (l.leases - $22::text
          - array(select e.worker from jsonb_each(l.leases) as e(worker, lease)
            where (e.worker, e.lease) in (select g.worker, g.lease from gone as g)))
        || case
          when d.era > $23::int8 then jsonb_build_object($24::text, l.leases -> $25::text)
          when d.has > 0 or $26::int8 > 0 or $27::int8 > 0
            then jsonb_build_object($28::text, jsonb_build_array(d.has, $29::int8, $30::int8))
          else '{}' end as leases
      from locked as l cross join decided as d
    ),
    changed as (
      update "queue_usage" as u set leases = (select w.leases from written as w)
      where u.queue = $31 and u.kind = $32
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
-- $8 = "42"
-- $9 = "mail"
-- $10 = "mail"
-- $11 = 10
-- $12 = 4
-- $13 = 3
-- $14 = 0
-- $15 = 2
-- $16 = 2
-- $17 = 3
-- $18 = 3
-- $19 = "42"
-- $20 = 42
-- $21 = 4
-- $22 = "42"
-- $23 = 0
-- $24 = "42"
-- $25 = "42"
-- $26 = 4
-- $27 = 0
-- $28 = "42"
-- $29 = 4
-- $30 = 0
-- $31 = "mail"
-- $32 = "mail"
