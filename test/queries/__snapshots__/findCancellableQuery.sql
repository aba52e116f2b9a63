    select f.queue, count(*)::float8 as jobs, max(f.id)::float8 as until from (
      select j.queue, j.id from "queue_jobs" as j
      where true
    ) as f group by f.queue order by f.queue
