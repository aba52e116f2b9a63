    delete from "queue_jobs" as j
    where j.queue = $1 and j.id = $2::int8
        and j.worker_id is not distinct from $3::int8 and j.fence = $4::int8
        and pg_current_xact_id_if_assigned() is not null
    returning j.id
-- $1 = "mail"
-- $2 = 42
-- $3 = 42
-- $4 = 1
