select s.queue from "queue_steps" as s where s.job_id = $1::int8 limit 1
-- $1 = 42
