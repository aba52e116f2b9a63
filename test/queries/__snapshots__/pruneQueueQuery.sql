    with expired as (
      select r.job_id from "queue_results" as r
      where r.queue = $1 and r.finished_at < statement_timestamp() - $2::float8 * interval '1 millisecond'
      order by r.finished_at limit $3
      for update skip locked
    )
    delete from "queue_results" as r
    where r.queue = $4 and r.job_id = any(array(select job_id from expired))
    returning r.job_id
-- $1 = "mail"
-- $2 = 86400000
-- $3 = 1000
-- $4 = "mail"
