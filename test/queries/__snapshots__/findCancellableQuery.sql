    select f.queue, string_agg(f.id::text, ', ' order by f.id) as ids from (
      select j.queue, j.id from "queue_jobs" as j
      where j.id > $1::int8 and j.id <= $2::int8
      order by j.id limit $3::int8
    ) as f group by f.queue order by f.queue
-- $1 = 42
-- $2 = 43
-- $3 = 10
