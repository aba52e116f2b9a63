      select j.id from generate_series(0, 9) as band(priority)
      cross join lateral (
        select j.id from "queue_jobs" as j
        where j.queue = $1 and j.priority = band.priority::int2
          and j.group_key is null and (j.group_key is null or j.id in (select generate_series(-10000, -1)))
          and (j.worker_id is null or j.worker_id not in (select w.id from "queue_workers" as w))
        order by j.run_at, j.id limit (select $2::int8)
      ) as j
      limit (select $3::int8)
-- $1 = "mail"
-- $2 = 1000
-- $3 = 1000
