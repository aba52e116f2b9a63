    select j.id, j.batch_id from "queue_jobs" as j
    where j.batch_id = any($1::text::int8[])
-- $1 = "{42,43}"
