    delete from "queue_steps" as w
    where w.queue = $1 and w.job_id = any(array(select unnest($2::text::int8[])))
      and not exists (select from "queue_jobs" as j where j.queue = $3 and j.id = w.job_id)
      and not exists (select from "queue_results" as r where r.queue = $4 and r.job_id = w.job_id)
    returning w.job_id
-- $1 = "mail"
-- $2 = "{42,43}"
-- $3 = "mail"
-- $4 = "mail"
