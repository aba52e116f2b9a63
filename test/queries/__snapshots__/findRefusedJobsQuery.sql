    select j.id, j.kind, j.priority, date_part('epoch', j.run_at) * 1000 as run_at, j.attempt from "queue_jobs" as j
    where j.queue = $1 and j.id = any(array(select unnest($2::text::int8[])))
-- $1 = "mail"
-- $2 = "{42,43}"
