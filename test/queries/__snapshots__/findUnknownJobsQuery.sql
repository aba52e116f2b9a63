    select j.id, j.fence from "queue_jobs" as j
    where j.queue = $1 and j.worker_id = $2
      and j.id > $3::int8 and j.id <= $4::int8
      and ((j.id, j.fence) in (
        select i.id, i.fence from rows from (unnest($5::text::int8[]), unnest($6::text::int8[])) as i(id, fence)
      )) is not true
-- $1 = "mail"
-- $2 = 42
-- $3 = 42
-- $4 = 43
-- $5 = "{42}"
-- $6 = "{7}"
