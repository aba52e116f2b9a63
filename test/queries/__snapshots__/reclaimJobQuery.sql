    update "queue_jobs" as j
    set worker_id = null, claimed_at = statement_timestamp(), attempt = $1::int2, fence = j.fence + 1, waiting_key = null
    where j.queue = $2 and j.id = $3 and j.fence = $4::int8 - 1
    returning j.cancel_reason
-- $1 = 2
-- $2 = "mail"
-- $3 = 42
-- $4 = 3
