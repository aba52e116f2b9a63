    select b.id from "queue_waits" as w join "queue_batches" as b on b.id = w.batch_id
    where w.job_id = $1::int8 and w.queue = $2 and w.policy in ('run', 'cancel')
      and b.ended_at is null
    limit 1
-- $1 = 42
-- $2 = "mail"
