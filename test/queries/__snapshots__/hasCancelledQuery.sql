    select r.job_id from "queue_results" as r
    where r.queue = $1 and r.job_id = $2::int8 and r.fence = $3::int8
      and r.state = 'cancelled'
-- $1 = "mail"
-- $2 = 42
-- $3 = 1
