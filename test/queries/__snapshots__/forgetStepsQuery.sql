    with live as materialized (
      select j.worker_id from "queue_jobs" as j where j.queue = $1 and j.id = $2::int8
      for no key update
    ),
    first as (
      select s.started_at from "queue_steps" as s
      where s.job_id = $3::int8 and s.queue = $4 and s.name = $5
    )
    delete from "queue_steps" as s
    using first
    where s.job_id = $6::int8 and s.queue = $7 
      and (s.started_at >= first.started_at or s.name = 'undo' or s.name like 'undo:%')
      and not exists (select from live where worker_id is not null)
    returning s.name
-- $1 = "mail"
-- $2 = 42
-- $3 = 42
-- $4 = "mail"
-- $5 = "mail"
-- $6 = 42
-- $7 = "mail"
