    select b.id from "queue_waits" as w join "queue_batches" as b on b.id = w.batch_id
    where w.job_id = $1::int8 and w.queue = $2 and w.policy in ('run', 'cancel')
      and b.ended_at is null
    union all
    select j.id from "queue_jobs" as j
    where j.queue = $3 and j.id = $4::int8 and j.cancel_reason is not null
    limit 1
-- $1 = 42
-- $2 = "mail"
-- $3 = "mail"
-- $4 = 42
