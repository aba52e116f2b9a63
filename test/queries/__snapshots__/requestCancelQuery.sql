    with held as (
      select j.id from "queue_jobs" as j
      where j.queue = $1 and j.id = $2 and j.worker_id is not null
      for no key update skip locked
    )
    update "queue_jobs" as j set cancel_reason = coalesce(j.cancel_reason, $3::text)
    where j.queue = $4 and j.id = any(array(select id from held))
    returning j.id
-- $1 = "mail"
-- $2 = 42
-- $3 = "mail"
-- $4 = "mail"
