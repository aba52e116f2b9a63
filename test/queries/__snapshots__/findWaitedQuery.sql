    select b.id, b.total::float8 as total, b.failed::float8 as failed
    from "queue_waits" as w join "queue_batches" as b on b.id = w.batch_id
    where w.job_id = $1::int8 and w.queue = $2 and w.policy in ('run', 'cancel', 'forked')
    order by b.id
-- $1 = 42
-- $2 = "mail"
