    with looked as materialized (
      select g.group_key, g.turn from "queue_groups" as g
      where g.queue = $1 and g.group_key > $2
      order by g.group_key limit (select $3::int8)
    ),
    locked as materialized (
      select g.group_key, g.rate_used, coalesce((
          select max(l.rate_per_ms) from "queue_limits" as l
          where l.queue = $4 and l.kind = '' and l.group_key in ('*', g.group_key)
        ), $5::int8) as rate_per_ms
      from looked as s cross join lateral (
        select g.group_key, g.rate_used from "queue_groups" as g
        where g.queue = $6 and g.group_key = s.group_key and g.turn = s.turn and g.ready_at = 'infinity'
        for update skip locked
      ) as g
    ),
    unused as materialized (
      select l.group_key from locked as l
      cross join lateral (
      select x.now, x.slot, e.used, e.oldest, e.kept
      from (
        select n.now, ceil(
          (floor((n.now + 0) * 20 / l.rate_per_ms) + 1) * l.rate_per_ms / 20
        )::int8 as slot
        from (select date_part('epoch', statement_timestamp()) * 1000 as now) as n
      ) as x
      cross join lateral (
        select coalesce(sum(e.value::int8), 0)::int8 as used, min(e.key::int8) as oldest,
          coalesce(jsonb_object_agg(e.key, e.value::int8), '{}') as kept
        from jsonb_each_text(l.rate_used) as e where e.key::int8 > x.now - l.rate_per_ms
      ) as e
    ) as u
      where u.used = 0 and not exists (
        select from "queue_jobs" as j
        where j.queue = $7 and j.group_key = l.group_key and j.group_key is not null and (j.group_key is not null or j.id in (select generate_series(-10000, -1))))
    ),
    pruned as (
      delete from "queue_groups" as g
      where g.queue = $8 and g.group_key = any(array(select group_key from unused))
    ),
    swept as (
      delete from "queue_holds" as h
      where h.queue = $9 and h.group_key = any(array(select group_key from unused))
        and (h.until <= statement_timestamp() or not (h.worker_id is null or h.worker_id in (select w.id from "queue_workers" as w)))
    )
    select count(*)::float8 as looked, max(l.group_key) as last,
      (select count(*)::float8 from unused) as pruned
    from looked as l
-- $1 = "mail"
-- $2 = "mail"
-- $3 = 1000
-- $4 = "mail"
-- $5 = 1000
-- $6 = "mail"
-- $7 = "mail"
-- $8 = "mail"
-- $9 = "mail"
