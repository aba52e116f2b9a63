    with recursive plain as (
      (
        select j.priority, j.queue, j.run_at from "queue_jobs" as j
        where j.priority >= 0 and j.group_key is null order by j.priority, j.queue, j.run_at limit 1
      )
      union all
      select n.* from plain as w cross join lateral (
        select j.priority, j.queue, j.run_at from "queue_jobs" as j
        where j.priority >= 0 and j.group_key is null and (j.priority, j.queue) > (w.priority, w.queue)
        order by j.priority, j.queue, j.run_at limit 1
      ) as n
    ),
    grouped as (
      (
        select j.queue, j.group_key, j.priority, j.run_at from "queue_jobs" as j
        where j.group_key is not null order by j.queue, j.group_key, j.priority, j.run_at limit 1
      )
      union all
      select n.* from grouped as w cross join lateral (
        select j.queue, j.group_key, j.priority, j.run_at from "queue_jobs" as j
        where j.group_key is not null and (j.queue, j.group_key, j.priority) > (w.queue, w.group_key, w.priority)
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
