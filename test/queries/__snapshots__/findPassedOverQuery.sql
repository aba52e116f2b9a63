    with recursive band as (
      (
        select j.priority, j.queue from "queue_jobs" as j
        where j.priority >= 0 and j.group_key is null order by j.priority, j.queue limit 1
      )
      union all
      select n.* from band as w cross join lateral (
        select j.priority, j.queue from "queue_jobs" as j
        where j.priority >= 0 and j.group_key is null and (j.priority, j.queue) > (w.priority, w.queue)
        order by j.priority, j.queue limit 1
      ) as n
    ),
    grouped as (
      (
        select j.queue from "queue_jobs" as j
        where j.group_key is not null order by j.queue limit 1
      )
      union all
      select n.* from grouped as w cross join lateral (
        select j.queue from "queue_jobs" as j
        where j.group_key is not null and (j.queue) > (w.queue)
        order by j.queue limit 1
      ) as n
    )
    (
      select 1 as list, b.queue, p.parked, p.parked_id, h.id, h.kind, h.due_ms, n.overtaken, n.served
      from (select * from band limit $1) as b
      cross join lateral (
        select count(*)::float8 as parked, min(j.id) as parked_id from (
          select j.id, (j.run_at = 'infinity' and j.errors -> -1 ->> 'name' = 'ClaimRefusedError') as refused from "queue_jobs" as j
          where j.priority = b.priority and j.queue = b.queue and j.group_key is null and (j.group_key is null or j.id in (select generate_series(-10000, -1))) and j.run_at = 'infinity'
          order by j.run_at, j.id limit 1000
        ) as j where j.refused
      ) as p
      left join lateral (
        select j.id, j.kind, j.run_at,
          (date_part('epoch', statement_timestamp()) - date_part('epoch', j.run_at)) * 1000 as due_ms
        from "queue_jobs" as j
        where j.priority = b.priority and j.queue = b.queue and j.group_key is null and (j.group_key is null or j.id in (select generate_series(-10000, -1))) and j.run_at <= statement_timestamp() and j.worker_id is null
        order by j.run_at, j.id limit 1
      ) as h on true
      cross join lateral (
        select bool_or(j.worker_id is not null and j.run_at > h.run_at + interval '1 minute') as overtaken,
          bool_or(j.worker_id is not null) as served
        from (
          select j.run_at, j.worker_id from "queue_jobs" as j
          where j.priority = b.priority and j.queue = b.queue and j.group_key is null and (j.group_key is null or j.id in (select generate_series(-10000, -1))) and j.run_at <= statement_timestamp()
          order by j.run_at, j.id limit 1000
        ) as j
      ) as n
    )
    union all
    (
      select 3, g.queue, p.parked, p.parked_id, null, null, null, null, null
      from (select * from grouped limit $2) as g
      cross join lateral (
        select count(*)::float8 as parked, min(j.id) as parked_id from (
          select j.id, (j.run_at = 'infinity' and j.errors -> -1 ->> 'name' = 'ClaimRefusedError') as refused from "queue_jobs" as j
          where j.queue = g.queue and j.group_key is not null limit 1000
        ) as j where j.refused
      ) as p
    )
-- $1 = 1000
-- $2 = 1000
