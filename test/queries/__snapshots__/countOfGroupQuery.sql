select count(*)::float8 as jobs from (
          with recursive part as (
      (
        select j.queue from "queue_jobs" as j
        where j.group_key is not null order by j.queue limit 1
      )
      union all
      select n.* from part as w cross join lateral (
        select j.queue from "queue_jobs" as j
        where j.group_key is not null and (j.queue) > (w.queue)
        order by j.queue limit 1
      ) as n
    )
          select j.* from part as p cross join lateral (
            select j.queue from "queue_jobs" as j
            where j.queue = p.queue and j.group_key = $1 limit $2
          ) as j limit $3
        ) as j
-- $1 = "mail"
-- $2 = 10
-- $3 = 10
