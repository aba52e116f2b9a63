    select j.queue from "queue_jobs" as j where j.id = $1::int8
    union all
    (select s.queue from "queue_steps" as s where s.job_id = $2::int8 limit 1)
    limit 1
-- $1 = 42
-- $2 = 42
