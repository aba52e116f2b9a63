    select not exists (select from "queue_jobs" as j where j.queue = $1 and j.id = $2)
      and not exists (select from "queue_results" as r where r.queue = $3 and r.job_id = $4 and r.fence <> $5) as ended
-- $1 = "mail"
-- $2 = 42
-- $3 = "mail"
-- $4 = 42
-- $5 = 3
