    with worker as materialized (
      select w.id from "queue_workers" as w cross join set_config('lock_timeout', $1::text, true) as patience where w.id = $2::int8
    ),
    locked as materialized (
      select u.rate_used from "queue_usage" as u
      where u.queue = $3 and u.kind = $4 and (select count(*) from worker) > 0
      for no key update
    ),
    rates as materialized (
      select coalesce(max(s.rate_limit), $5::int4) as max,
        coalesce(max(s.rate_per_ms), $6::int8) as per_ms
      from "queue_limits" as s where s.queue = $7 and s.kind = $8 and s.group_key = ''
    ),
    counted as materialized (
      select r.max, r.per_ms, x.now, x.slot, x.used, x.kept
      from (
        select coalesce(jsonb_object_agg(
            e.part, greatest(0, e.n::int8 - coalesce((b.unspent ->> e.part)::int8, 0))
          ), '{}') as rate_used
        from locked as l cross join (select $9::text::jsonb as unspent) as b
        cross join jsonb_each_text(l.rate_used) as e(part, n)
      ) as l
      cross join rates as r
      cross join lateral (
      select x.now, x.slot, e.used, e.oldest, e.kept
      from (
        select n.now, ceil(
          (floor((n.now + $10::float8) * 20 / r.per_ms) + 1) * r.per_ms / 20
        )::int8 as slot
        from (select date_part('epoch', statement_timestamp()) * 1000 as now) as n
      ) as x
      cross join lateral (
        select coalesce(sum(e.value::int8), 0)::int8 as used, min(e.key::int8) as oldest,
          coalesce(jsonb_object_agg(e.key, e.value::int8), '{}') as kept
        from jsonb_each_text(l.rate_used) as e where e.key::int8 > x.now - r.per_ms
      ) as e
    ) as x
    ),
    granted as materialized (
      select c.*, case when c.max - c.used >= least($11::int8, c.max)
        then greatest(0, least($12::int8, c.max - c.used)) else 0 end as n
      from counted as c
    ),
    taken as materialized (
      select g.*, case when g.n = 0 then g.kept else g.kept || jsonb_build_object(
        g.slot::text, coalesce((g.kept ->> g.slot::text)::int8, 0) + g.n) end as rate_used from granted as g
    ),
    written as (
      update "queue_usage" as u set rate_used = (select t.rate_used from taken as t)
      where u.queue = $13 and u.kind = $14 and (select count(*) from locked) > 0
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
      where p.free >= least($15::int8, t.max) and p.free > t.max - t.used - t.n
      order by p.part limit 1
    ) as p on true
-- $1 = "100ms"
-- $2 = 42
-- $3 = "mail"
-- $4 = "mail"
-- $5 = 10
-- $6 = 1000
-- $7 = "mail"
-- $8 = "mail"
-- $9 = "{\"1700000000000\":2}"
-- $10 = 25
-- $11 = 1
-- $12 = 3
-- $13 = "mail"
-- $14 = "mail"
-- $15 = 1
