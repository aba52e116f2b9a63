    with recursive plain as (
      (
        select j.queue, j.priority, j.run_at from "queue_jobs" as j
        where j.priority >= 0 and j.group_key is null
        order by j.priority, j.queue, j.run_at limit 1
      )
      union all
      select n.queue, n.priority, n.run_at from plain as b cross join lateral (
        select j.queue, j.priority, j.run_at from "queue_jobs" as j
        where j.priority >= 0 and j.group_key is null and (j.priority, j.queue) > (b.priority, b.queue)
        order by j.priority, j.queue, j.run_at limit 1
      ) as n
    ),
    grouped as (
      (
        select j.queue, j.group_key, j.priority, j.run_at from "queue_jobs" as j
        where j.group_key is not null
        order by j.queue, j.group_key, j.priority, j.run_at limit 1
      )
      union all
      select n.queue, n.group_key, n.priority, n.run_at from grouped as b cross join lateral (
        select j.queue, j.group_key, j.priority, j.run_at from "queue_jobs" as j
        where j.group_key is not null
          and (j.queue, j.group_key, j.priority) > (b.queue, b.group_key, b.priority)
        order by j.queue, j.group_key, j.priority, j.run_at limit 1
      ) as n
    )
    (
      select p.queue, null::text as group_key, p.priority, trunc(extract(epoch from p.run_at) * 1000000)::text as run_us,
        p.run_at <= statement_timestamp() as is_due from plain as p
      where true limit $1
    )
    union all
    (
      select g.queue, g.group_key, g.priority, trunc(extract(epoch from g.run_at) * 1000000)::text as run_us,
        g.run_at <= statement_timestamp() as is_due from grouped as g limit $2
    )
-- $1 = 10
-- $2 = 10
