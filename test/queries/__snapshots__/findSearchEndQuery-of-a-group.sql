    select max(e.id)::float8 as last from (
      (select r.job_id as id from "queue_results" as r
        where r.group_key = $1 and r.job_id < $2::int8
        order by r.job_id desc offset $3 limit 1)
    ) as e
-- $1 = "mail"
-- $2 = 42
-- $3 = 99
