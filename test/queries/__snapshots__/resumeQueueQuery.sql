    with resumed as (
      delete from "queue_pauses" as p where p.queue = $1
      returning p.queue
    )
    select r.queue, pg_notify($2::text, $3) is not null as woke
    from resumed as r
-- $1 = "mail"
-- $2 = "queue_wake_queue_jobs"
-- $3 = ""
