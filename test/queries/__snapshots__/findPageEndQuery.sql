    select j.id from "queue_jobs" as j where j.id > $1::int8
    order by j.id offset $2 limit 1
-- $1 = 42
-- $2 = 49999
