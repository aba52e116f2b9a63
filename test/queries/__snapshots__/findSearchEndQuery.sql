    select max(e.id)::float8 as last from (
      (select j.id from "queue_jobs" as j where j.id < $1::int8
        order by j.id desc offset $2 limit 1) union all 
      (select r.job_id as id from "queue_results" as r
        where true and r.job_id < $3::int8
        order by r.job_id desc offset $4 limit 1)
    ) as e
-- $1 = 42
-- $2 = 99
-- $3 = 42
-- $4 = 99
