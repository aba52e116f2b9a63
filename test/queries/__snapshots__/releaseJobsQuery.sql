    update "queue_jobs" as j
    set worker_id = null, claimed_at = null, attempt = j.attempt - 1
    where j.queue = $1 and j.worker_id = $2
      and not exists (
        select from rows from (unnest($3::text::int8[]), unnest($4::text::int8[])) as i(id, fence)
        where i.id = j.id and i.fence = j.fence)
    returning j.id
-- $1 = "mail"
-- $2 = 42
-- $3 = "{42}"
-- $4 = "{7}"
