    update "queue_jobs" as j
    set worker_id = null, claimed_at = statement_timestamp(), attempt = j.attempt + 1, fence = j.fence + 1
    where j.queue = $1 and j.id = $2 and j.fence = $3::int8 - 1
    returning j.id
-- $1 = "mail"
-- $2 = 42
-- $3 = 3
