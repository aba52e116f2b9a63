    with free as materialized (
        select n.ctid as at, n.id, n.due_at, n.group_keys from "queue_notes" as n
        where n.queue = $1 and n.due_at <= statement_timestamp()
        order by n.due_at, n.id limit (
          select count(*) from (
            select sum(n.keys) over (order by n.due_at, n.id) - n.keys as before from (
              select n.due_at, n.id, cardinality(n.group_keys) as keys from "queue_notes" as n
              where n.queue = $2 and n.due_at <= statement_timestamp()
              order by n.due_at, n.id limit (select $3::int8 + 8)
            ) as n
          ) as n
          where n.before < $4::int8 + 8
        )
        for update of n skip locked
    ),
    asked as materialized (
      select n.group_key, min(n.due_at) as due_at
      from (select n.due_at, unnest(n.group_keys) as group_key from free as n) as n
      group by n.group_key
    ),
    idle as materialized (
      select k.*, k.at is null or (
          exists (
            select from (
              select j.run_at <= statement_timestamp() and (j.worker_id is null or j.worker_id not in (select w.id from "queue_workers" as w)) as due from "queue_jobs" as j where j.queue = $5 and j.group_key = k.group_key and j.group_key is not null and (j.group_key is not null or j.id in (select generate_series(-10000, -1))) order by j.priority, j.run_at, j.id limit 100
            ) as h
            where h.due
          ) or (
            (select count(*) from (
              select from "queue_jobs" as j where j.queue = $6 and j.group_key = k.group_key and j.group_key is not null and (j.group_key is not null or j.id in (select generate_series(-10000, -1))) order by j.priority, j.run_at, j.id limit 100
            ) as h) >= 100
            and exists (
              select from generate_series(0, 9) as band(priority) cross join lateral (
                select from "queue_jobs" as j
                where j.queue = $7 and j.group_key = k.group_key and j.group_key is not null and (j.group_key is not null or j.id in (select generate_series(-10000, -1))) and j.priority = band.priority::int2 and j.run_at <= statement_timestamp() and (j.worker_id is null or j.worker_id not in (select w.id from "queue_workers" as w))
                order by j.run_at, j.id limit 1
              ) as j
            )
          )
        ) as waits
      from (
        select a.group_key, a.due_at, g.at, g.turn, g.ready_at from asked as a left join lateral (
          select g.ctid as at, g.turn, g.ready_at from "queue_groups" as g
          where g.queue = $8 and g.group_key = a.group_key
          offset 0
        ) as g on true
      ) as k
      where k.at is null or k.ready_at > statement_timestamp()
    ),
    ring as materialized (
      select r.turn as first, coalesce(r.turn, (
        select g.turn from "queue_groups" as g
        where g.queue = $9 and g.turn >= 0 and g.ready_at = 'infinity' order by g.turn desc limit 1
      ), 0) as turn
      from (select (
        select g.turn from "queue_groups" as g
        where g.queue = $10 and g.turn >= 0 and g.ready_at = '-infinity' order by g.turn limit 1
      ) as turn) as r
    ),
    seen as materialized (
      (select g.*, row_number() over (order by g.turn) * 2 + $11::int8 as place
        from (
          (select g.ctid as at, g.group_key, g.turn from "queue_groups" as g
            where g.queue = $12 and g.turn >= 0 and g.ready_at = '-infinity'
            order by g.turn limit (select $13::int8 * 2 + 32 from generate_series(1, $14::int4) as a cross join generate_series(1, $15::int4) as b cross join generate_series(1, $16::int4) as c))
          union all
          select i.at, i.group_key, i.turn from idle as i cross join ring as r
          where i.waits and i.turn > coalesce(r.first, 0)
        ) as g
        order by g.turn limit (select $17::int8 * 2 + 32))
      union all
      (select g.at, g.group_key, g.turn, row_number() over (order by g.ready_at) * 2 as place
        from (
          (select g.ctid as at, g.group_key, g.turn, g.ready_at from "queue_groups" as g
            where g.queue = $18 and g.turn >= 0 and g.ready_at > '-infinity' and g.ready_at <= statement_timestamp()
            order by g.ready_at limit (select $19::int8 + 8))
          union all
          select i.at, i.group_key, coalesce(i.turn, 0), i.due_at from idle as i cross join ring as r
          where i.waits and (i.turn > coalesce(r.first, 0)) is not true
        ) as g
        order by g.ready_at limit (select $20::int8 + 8))
    ),
    every as materialized (
      select max(l.concurrency) as concurrency, max(l.rate_limit) as rate_limit,
        max(l.rate_per_ms) as rate_per_ms, max(l.weight) as weight
      from "queue_limits" as l where l.queue = $21 and l.kind = '' and l.group_key = '*'
    ),
    locked as materialized (
      select s.place, s.at, s.group_key, coalesce(g.turn, 0) as turn,
        coalesce(g.rate_used, '{}') as rate_used, coalesce(g.held, '{}') as held,
        case when s.at is null then '-infinity' else g.bounded_since end as bounded_since
      from (select * from seen order by place) as s left join lateral (
        select g.turn, g.rate_used, g.held, g.bounded_since from "queue_groups" as g
        where g.ctid = s.at and g.queue = $22 and g.group_key = s.group_key and g.turn = s.turn
        for no key update skip locked
      ) as g on true
      where s.at is null or g.turn is not null
      limit (select $23::int8)
    ),
    ruled as not materialized (
      select l.*, coalesce(o.weight, e.weight, 1) as share_of,
        coalesce(o.concurrency, e.concurrency, $24::int4) as concurrency,
        coalesce(o.rate_limit, e.rate_limit, $25::int4) as rate_limit,
        coalesce(o.rate_per_ms, e.rate_per_ms, $26::int8) as rate_per_ms
      from locked as l cross join every as e left join "queue_limits" as o
        on o.queue = $27 and o.kind = '' and o.group_key = l.group_key
    ),
    blocking as materialized (
      select h.group_key, case when (h.worker_id is null or h.worker_id in (select w.id from "queue_workers" as w)) then h.until else '-infinity' end as until
      from "queue_holds" as h
      where h.queue = $28 and h.group_key = any(array(select group_key from locked))
    ),
    counted as not materialized (
      select l.place, l.at, l.group_key, l.turn, l.share_of, l.concurrency, l.rate_limit, l.rate_per_ms,
        l.rate_used as kept, h.standing, l.bounded_since,
        h.held + b.going_on + b.waits::int4 as held, b.until as held_until,
        (ceil($29::float8 * sum(l.share_of) over w / sum(l.share_of) over ())
          - ceil($30::float8 * (sum(l.share_of) over w - l.share_of) / sum(l.share_of) over ()))::int8
          as share
      from ruled as l
      cross join lateral (
        select count(*) filter (where j.worker_id in (select w.id from "queue_workers" as w)) as held,
          array_agg(j.id) filter (where j.worker_id is not null) as standing
        from "queue_jobs" as j where j.queue = $31 and j.id = any(l.held)
      ) as h
      cross join lateral (
        select min(h.until) as until, count(h.worker_id) as going_on, count(*) > count(h.worker_id) as waits
        from "queue_holds" as h
        where h.queue = $32 and h.group_key = l.group_key and h.until > statement_timestamp()
          and (h.worker_id is null or h.worker_id in (select w.id from "queue_workers" as w))
          and l.group_key in (select b.group_key from blocking as b)
      ) as b
      window w as (order by l.place rows unbounded preceding)
    ),
    open as materialized (
      select c.*, case when c.rate_limit is null then least(c.share, c.concurrency - c.held) else 0 end as room
      from counted as c where c.share > 0
    )
    select j.id from (
      select l.group_key, l.place, greatest($33::int8 * 4 / count(*) over (), 4) as most
      from locked as l
    ) as g
    cross join lateral (
      select j.id, row_number() over (order by j.priority, j.run_at, j.id) as n from "queue_jobs" as j
      where j.queue = $34 and j.group_key = g.group_key and j.group_key is not null and (j.group_key is not null or j.id in (select generate_series(-10000, -1))) and j.run_at <= statement_timestamp() and (j.worker_id is null or j.worker_id not in (select w.id from "queue_workers" as w)) and (j.kind in (select jsonb_array_elements_text($35::text::jsonb))) is true and (j.id in (select unnest($36::text::int8[]))) is not true
      order by j.priority, j.run_at, j.id limit g.most
    ) as j
    order by (j.n - 1) / 4, g.place, j.n limit $37::int8 * 4
-- $1 = "mail"
-- $2 = "mail"
-- $3 = 10
-- $4 = 10
-- $5 = "mail"
-- $6 = "mail"
-- $7 = "mail"
-- $8 = "mail"
-- $9 = "mail"
-- $10 = "mail"
-- $11 = 1
-- $12 = "mail"
-- $13 = 10
-- $14 = 1
-- $15 = 1
-- $16 = 1
-- $17 = 10
-- $18 = "mail"
-- $19 = 10
-- $20 = 10
-- $21 = "mail"
-- $22 = "mail"
-- $23 = 10
-- $24 = 2
-- $25 = 10
-- $26 = 1000
-- $27 = "mail"
-- $28 = "mail"
-- $29 = 10
-- $30 = 10
-- $31 = "mail"
-- $32 = "mail"
-- $33 = 10
-- $34 = "mail"
-- $35 = "[\"mail\"]"
-- $36 = "{42,43}"
-- $37 = 10
