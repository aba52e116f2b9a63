    select j.id, j.fence from "queue_jobs" as j
    where j.queue = $1 and j.worker_id = $2
      and not exists (
        select from rows from (unnest($3::text::int8[]), unnest($4::text::int8[])) as i(id, fence)
        where i.id = j.id and i.fence = j.fence)
-- $1 = "mail"
-- $2 = 42
-- $3 = "{42}"
-- $4 = "{7}"
