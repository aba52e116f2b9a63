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
    ),
    part as (
      (
        select j.queue, j.group_key, j.priority from "queue_jobs" as j
        where j.group_key is not null order by j.queue, j.group_key, j.priority limit 1
      )
      union all
      select n.* from part as w cross join lateral (
        select j.queue, j.group_key, j.priority from "queue_jobs" as j
        where j.group_key is not null and (j.queue, j.group_key, j.priority) > (w.queue, w.group_key, w.priority)
        order by j.queue, j.group_key, j.priority limit 1
      ) as n
    )
    (
      select 1 as list, b.queue, h.kind,
        (date_part('epoch', statement_timestamp()) - date_part('epoch', h.run_at)) * 1000 as due_ms
      from (select * from band limit $1) as b
      left join lateral (
        select j.kind, j.run_at from "queue_jobs" as j
        where j.priority = b.priority and j.queue = b.queue
          and j.group_key is null and (j.group_key is null or j.id in (select generate_series(-10000, -1)))
          and j.run_at <= statement_timestamp() and j.worker_id is null
        order by j.run_at, j.id limit 1
      ) as h on true
    )
    union all
    (
      select 2, p.queue, h.kind,
        (date_part('epoch', statement_timestamp()) - date_part('epoch', h.run_at)) * 1000 as due_ms
      from (select * from part limit $2) as p
      left join lateral (
        select j.kind, j.run_at from "queue_jobs" as j
        where j.queue = p.queue and j.group_key = p.group_key and j.priority = p.priority
          and j.group_key is not null and (j.group_key is not null or j.id in (select generate_series(-10000, -1)))
          and j.run_at <= statement_timestamp() and j.worker_id is null
        order by j.run_at, j.id limit 1
      ) as h on true
    )
    union all
    (
      select 3, g.queue, null, null from grouped as g limit $3
    )
-- $1 = 1000
-- $2 = 1000
-- $3 = 1000
