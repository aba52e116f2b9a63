select from "queue_jobs" as j where j.queue = $1 and j.worker_id is null and j.run_at <= statement_timestamp()
-- $1 = "mail"
