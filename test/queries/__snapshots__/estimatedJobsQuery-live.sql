select from "queue_jobs" as j where j.queue = $1
-- $1 = "mail"
