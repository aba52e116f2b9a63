select from "queue_jobs" as j where j.queue = $1 and j.worker_id is not null
-- $1 = "mail"
