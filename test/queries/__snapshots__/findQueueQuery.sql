select j.queue from "queue_jobs" as j where j.id = $1::int8
-- $1 = 42
