    select s.name from "queue_steps" as s
    where s.job_id = $1::int8 and s.queue = $2 and s.name <> 'undo' and s.name not like 'undo:%'
    order by s.started_at, s.name limit $3::int4
-- $1 = 42
-- $2 = "mail"
-- $3 = 51
