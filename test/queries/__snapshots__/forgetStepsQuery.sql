    with first as (
      select s.started_at from "queue_steps" as s
      where s.job_id = $1::int8 and s.queue = $2 and s.name = $3
    )
    delete from "queue_steps" as s
    using first
    where s.job_id = $4::int8 and s.queue = $5
      and (
        s.started_at >= first.started_at or s.name = 'undo' or s.name like 'undo:%' or exists (
          select from "queue_steps" as u
          where u.job_id = s.job_id and u.queue = s.queue and u.name = 'undo:' || s.name
        )
      )
    returning s.name
-- $1 = 42
-- $2 = "mail"
-- $3 = "mail"
-- $4 = 42
-- $5 = "mail"
