select pg_notify($1, $2)
-- $1 = "queue_wake_queue_jobs"
-- $2 = "mail"
