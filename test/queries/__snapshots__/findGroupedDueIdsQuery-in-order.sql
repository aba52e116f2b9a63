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
        ) as waits, exists (
              select from (
            select h.id, h.at from (
              select j.id, j.ctid as at, j.run_at <= statement_timestamp() and (j.worker_id is null or j.worker_id not in (select w.id from "queue_workers" as w)) as due from "queue_jobs" as j
              where j.queue = $8 and j.group_key = k.group_key and j.group_key is not null and (j.group_key is not null or j.id in (select generate_series(-10000, -1))) order by j.priority, j.run_at, j.id limit 1 + 100
            ) as h where h.due
            union all
            select j.id, j.at from generate_series(0, 9) as band(priority)
            cross join lateral (
              select j.id, j.ctid as at from "queue_jobs" as j
              where j.queue = $9 and j.group_key = k.group_key and j.group_key is not null and (j.group_key is not null or j.id in (select generate_series(-10000, -1))) and j.priority = band.priority::int2 and j.run_at <= statement_timestamp() and (j.worker_id is null or j.worker_id not in (select w.id from "queue_workers" as w))
              order by j.run_at, j.id limit 1 + 16
            ) as j
            where (
              select count(*) >= 1 + 100 and count(*) filter (where h.due) < 16 from (
              select j.id, j.ctid as at, j.run_at <= statement_timestamp() and (j.worker_id is null or j.worker_id not in (select w.id from "queue_workers" as w)) as due from "queue_jobs" as j
              where j.queue = $10 and j.group_key = k.group_key and j.group_key is not null and (j.group_key is not null or j.id in (select generate_series(-10000, -1))) order by j.priority, j.run_at, j.id limit 1 + 100
            ) as h
            ) and j.id not in (select h.id from (
              select j.id, j.ctid as at, j.run_at <= statement_timestamp() and (j.worker_id is null or j.worker_id not in (select w.id from "queue_workers" as w)) as due from "queue_jobs" as j
              where j.queue = $11 and j.group_key = k.group_key and j.group_key is not null and (j.group_key is not null or j.id in (select generate_series(-10000, -1))) order by j.priority, j.run_at, j.id limit 1 + 100
            ) as h where h.due)
            limit 1) as k
              join "queue_jobs" as j on j.ctid = k.at and j.queue = $12 and j.id = k.id
              where (j.kind in (select jsonb_array_elements_text($13::text::jsonb))) is true
            ) as fits
      from (
        select a.group_key, a.due_at, g.at, g.turn, g.ready_at from asked as a left join lateral (
          select g.ctid as at, g.turn, g.ready_at from "queue_groups" as g
          where g.queue = $14 and g.group_key = a.group_key
          offset 0
        ) as g on true
      ) as k
      where k.at is null or k.ready_at > statement_timestamp()
    ),
    ring as materialized (
      select r.turn as first, coalesce(r.turn, (
        select g.turn from "queue_groups" as g
        where g.queue = $15 and g.turn >= 0 and g.ready_at = 'infinity' order by g.turn desc limit 1
      ), 0) as turn
      from (select (
        select g.turn from "queue_groups" as g
        where g.queue = $16 and g.turn >= 0 and g.ready_at = '-infinity' order by g.turn limit 1
      ) as turn) as r
    ),
    seen as materialized (
      (select g.*, row_number() over (order by g.turn) * 2 + $17::int8 as place
        from (
          (select g.* from (
            select g.ctid as at, g.group_key, g.turn from "queue_groups" as g
            where g.queue = $18 and g.turn >= 0 and g.ready_at = '-infinity'
            order by g.turn limit (select 10000 from generate_series(1, $19::int4) as a cross join generate_series(1, $20::int4) as b cross join generate_series(1, $21::int4) as c) offset $22::int8
            ) as g
            where exists (
              select from (
            select h.id, h.at from (
              select j.id, j.ctid as at, j.run_at <= statement_timestamp() and (j.worker_id is null or j.worker_id not in (select w.id from "queue_workers" as w)) as due from "queue_jobs" as j
              where j.queue = $23 and j.group_key = g.group_key and j.group_key is not null and (j.group_key is not null or j.id in (select generate_series(-10000, -1))) order by j.priority, j.run_at, j.id limit 1 + 100
            ) as h where h.due
            union all
            select j.id, j.at from generate_series(0, 9) as band(priority)
            cross join lateral (
              select j.id, j.ctid as at from "queue_jobs" as j
              where j.queue = $24 and j.group_key = g.group_key and j.group_key is not null and (j.group_key is not null or j.id in (select generate_series(-10000, -1))) and j.priority = band.priority::int2 and j.run_at <= statement_timestamp() and (j.worker_id is null or j.worker_id not in (select w.id from "queue_workers" as w))
              order by j.run_at, j.id limit 1 + 16
            ) as j
            where (
              select count(*) >= 1 + 100 and count(*) filter (where h.due) < 16 from (
              select j.id, j.ctid as at, j.run_at <= statement_timestamp() and (j.worker_id is null or j.worker_id not in (select w.id from "queue_workers" as w)) as due from "queue_jobs" as j
              where j.queue = $25 and j.group_key = g.group_key and j.group_key is not null and (j.group_key is not null or j.id in (select generate_series(-10000, -1))) order by j.priority, j.run_at, j.id limit 1 + 100
            ) as h
            ) and j.id not in (select h.id from (
              select j.id, j.ctid as at, j.run_at <= statement_timestamp() and (j.worker_id is null or j.worker_id not in (select w.id from "queue_workers" as w)) as due from "queue_jobs" as j
              where j.queue = $26 and j.group_key = g.group_key and j.group_key is not null and (j.group_key is not null or j.id in (select generate_series(-10000, -1))) order by j.priority, j.run_at, j.id limit 1 + 100
            ) as h where h.due)
            limit 1) as k
              join "queue_jobs" as j on j.ctid = k.at and j.queue = $27 and j.id = k.id
              where (j.kind in (select jsonb_array_elements_text($28::text::jsonb))) is true
            ) limit (select $29::int8 * 2 + 32 from generate_series(1, $30::int4) as a cross join generate_series(1, $31::int4) as b cross join generate_series(1, $32::int4) as c))
          union all
          select i.at, i.group_key, i.turn from idle as i cross join ring as r
          where i.waits and i.fits and i.turn > coalesce(r.first, 0)
        ) as g
        order by g.turn limit (select $33::int8 * 2 + 32))
      union all
      (select g.at, g.group_key, g.turn, row_number() over (order by g.ready_at) * 2 as place
        from (
          (select g.* from (
            select g.ctid as at, g.group_key, g.turn, g.ready_at from "queue_groups" as g
            where g.queue = $34 and g.turn >= 0 and g.ready_at > '-infinity' and g.ready_at <= statement_timestamp()
            order by g.ready_at limit (select 10000 from generate_series(1, $35::int4) as a cross join generate_series(1, $36::int4) as b cross join generate_series(1, $37::int4) as c) offset $38::int8
            ) as g
            where exists (
              select from (
            select h.id, h.at from (
              select j.id, j.ctid as at, j.run_at <= statement_timestamp() and (j.worker_id is null or j.worker_id not in (select w.id from "queue_workers" as w)) as due from "queue_jobs" as j
              where j.queue = $39 and j.group_key = g.group_key and j.group_key is not null and (j.group_key is not null or j.id in (select generate_series(-10000, -1))) order by j.priority, j.run_at, j.id limit 1 + 100
            ) as h where h.due
            union all
            select j.id, j.at from generate_series(0, 9) as band(priority)
            cross join lateral (
              select j.id, j.ctid as at from "queue_jobs" as j
              where j.queue = $40 and j.group_key = g.group_key and j.group_key is not null and (j.group_key is not null or j.id in (select generate_series(-10000, -1))) and j.priority = band.priority::int2 and j.run_at <= statement_timestamp() and (j.worker_id is null or j.worker_id not in (select w.id from "queue_workers" as w))
              order by j.run_at, j.id limit 1 + 16
            ) as j
            where (
              select count(*) >= 1 + 100 and count(*) filter (where h.due) < 16 from (
              select j.id, j.ctid as at, j.run_at <= statement_timestamp() and (j.worker_id is null or j.worker_id not in (select w.id from "queue_workers" as w)) as due from "queue_jobs" as j
              where j.queue = $41 and j.group_key = g.group_key and j.group_key is not null and (j.group_key is not null or j.id in (select generate_series(-10000, -1))) order by j.priority, j.run_at, j.id limit 1 + 100
            ) as h
            ) and j.id not in (select h.id from (
              select j.id, j.ctid as at, j.run_at <= statement_timestamp() and (j.worker_id is null or j.worker_id not in (select w.id from "queue_workers" as w)) as due from "queue_jobs" as j
              where j.queue = $42 and j.group_key = g.group_key and j.group_key is not null and (j.group_key is not null or j.id in (select generate_series(-10000, -1))) order by j.priority, j.run_at, j.id limit 1 + 100
            ) as h where h.due)
            limit 1) as k
              join "queue_jobs" as j on j.ctid = k.at and j.queue = $43 and j.id = k.id
              where (j.kind in (select jsonb_array_elements_text($44::text::jsonb))) is true
            ) limit (select $45::int8 + 8))
          union all
          select i.at, i.group_key, coalesce(i.turn, 0), i.due_at from idle as i cross join ring as r
          where i.waits and i.fits and (i.turn > coalesce(r.first, 0)) is not true
        ) as g
        order by g.ready_at limit (select $46::int8 + 8))
    ),
    every as materialized (
      select max(l.concurrency) as concurrency, max(l.rate_limit) as rate_limit,
        max(l.rate_per_ms) as rate_per_ms, max(l.weight) as weight
      from "queue_limits" as l where l.queue = $47 and l.kind = '' and l.group_key = '*'
    ),
    locked as materialized (
      select s.place, s.at, s.group_key, coalesce(g.turn, 0) as turn,
        coalesce(g.rate_used, '{}') as rate_used, coalesce(g.held, '{}') as held,
        case when s.at is null then '-infinity' else g.bounded_since end as bounded_since
      from (select * from seen order by place) as s left join lateral (
        select g.turn, g.rate_used, g.held, g.bounded_since from "queue_groups" as g
        where g.ctid = s.at and g.queue = $48 and g.group_key = s.group_key and g.turn = s.turn
        for no key update skip locked
      ) as g on true
      where s.at is null or g.turn is not null
      limit (select $49::int8)
    ),
    ruled as not materialized (
      select l.*, coalesce(o.weight, e.weight, 1) as share_of,
        1 as concurrency,
        coalesce(o.rate_limit, e.rate_limit, $50::int4) as rate_limit,
        coalesce(o.rate_per_ms, e.rate_per_ms, $51::int8) as rate_per_ms
      from locked as l cross join every as e left join "queue_limits" as o
        on o.queue = $52 and o.kind = '' and o.group_key = l.group_key
    ),
    blocking as materialized (
      select h.group_key, case when (h.worker_id is null or h.worker_id in (select w.id from "queue_workers" as w)) then h.until else '-infinity' end as until
      from "queue_holds" as h
      where h.queue = $53 and h.group_key = any(array(select group_key from locked))
    ),
    counted as not materialized (
      select l.place, l.at, l.group_key, l.turn, l.share_of, l.concurrency, l.rate_limit, l.rate_per_ms,
        l.rate_used as kept, h.standing, l.bounded_since,
        h.held + b.going_on + b.waits::int4 as held, b.until as held_until,
        (ceil($54::float8 * sum(l.share_of) over w / sum(l.share_of) over ())
          - ceil($55::float8 * (sum(l.share_of) over w - l.share_of) / sum(l.share_of) over ()))::int8
          as share
      from ruled as l
      cross join lateral (
        select count(*) filter (where j.worker_id in (select w.id from "queue_workers" as w)) as held,
          array_agg(j.id) filter (where j.worker_id is not null) as standing
        from "queue_jobs" as j where j.queue = $56 and j.id = any(l.held)
      ) as h
      cross join lateral (
        select min(h.until) as until, count(h.worker_id) as going_on, count(*) > count(h.worker_id) as waits
        from "queue_holds" as h
        where h.queue = $57 and h.group_key = l.group_key and h.until > statement_timestamp()
          and (h.worker_id is null or h.worker_id in (select w.id from "queue_workers" as w))
          and l.group_key in (select b.group_key from blocking as b)
      ) as b
      window w as (order by l.place rows unbounded preceding)
    ),
    open as materialized (
      select c.*, case when c.rate_limit is null then case when c.held > 0 then 0 else least(c.share, $58::int8) end else 0 end as room
      from counted as c where c.share > 0
    )
    select j.id from (
      select l.group_key, l.place, greatest($59::int8 * 4 / count(*) over (), 4) as most
      from locked as l
    ) as g
    cross join lateral (
      select j.id, row_number() over (order by j.priority, j.run_at, j.id) as n from "queue_jobs" as j
      where j.queue = $60 and j.group_key = g.group_key and j.group_key is not null and (j.group_key is not null or j.id in (select generate_series(-10000, -1))) and j.run_at <= statement_timestamp() and (j.worker_id is null or j.worker_id not in (select w.id from "queue_workers" as w)) and (j.kind in (select jsonb_array_elements_text($61::text::jsonb))) is true and (j.id in (select unnest($62::text::int8[]))) is not true
      order by j.priority, j.run_at, j.id limit g.most
    ) as j
    order by (j.n - 1) / 4, g.place, j.n limit $63::int8 * 4
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
-- $11 = "mail"
-- $12 = "mail"
-- $13 = "[\"mail\"]"
-- $14 = "mail"
-- $15 = "mail"
-- $16 = "mail"
-- $17 = 1
-- $18 = "mail"
-- $19 = 1
-- $20 = 1
-- $21 = 1
-- $22 = 10000
-- $23 = "mail"
-- $24 = "mail"
-- $25 = "mail"
-- $26 = "mail"
-- $27 = "mail"
-- $28 = "[\"mail\"]"
-- $29 = 10
-- $30 = 1
-- $31 = 1
-- $32 = 1
-- $33 = 10
-- $34 = "mail"
-- $35 = 1
-- $36 = 1
-- $37 = 1
-- $38 = 10000
-- $39 = "mail"
-- $40 = "mail"
-- $41 = "mail"
-- $42 = "mail"
-- $43 = "mail"
-- $44 = "[\"mail\"]"
-- $45 = 10
-- $46 = 10
-- $47 = "mail"
-- $48 = "mail"
-- $49 = 10
-- $50 = null
-- $51 = null
-- $52 = "mail"
-- $53 = "mail"
-- $54 = 10
-- $55 = 10
-- $56 = "mail"
-- $57 = "mail"
-- $58 = 100
-- $59 = 10
-- $60 = "mail"
-- $61 = "[\"mail\"]"
-- $62 = "{}"
-- $63 = 10
