    select d.queue, count(*)::float8 as jobs from (
      select r.queue from "queue_results" as r
      where r.state = 'discarded' and r.kind = $1
      order by r.job_id limit $2::int8
    ) as d group by d.queue order by d.queue
-- $1 = "mail"
-- $2 = 10
