    select j.worker_id is not null as running, j.cancel_reason is null and j.worker_id is null and j.blockers is not null and (
        j.run_at > statement_timestamp() or exists (
          select from "queue_steps" as s
          where s.job_id = j.id and s.queue = j.queue and s.ended_at is null and s.error is null
            and (s.kind <> 'sleep' or s.until > statement_timestamp())
        )
      ) as waiting
    from "queue_jobs" as j where j.queue = $1 and j.id = $2::int8 and j.kind = $3
-- $1 = "mail"
-- $2 = 42
-- $3 = "mail"
