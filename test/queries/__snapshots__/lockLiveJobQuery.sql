    select j.worker_id is not null or j.cancel_reason is not null as held from "queue_jobs" as j
    where j.queue = $1 and j.id = $2::int8
    for no key update skip locked
-- $1 = "mail"
-- $2 = 42
