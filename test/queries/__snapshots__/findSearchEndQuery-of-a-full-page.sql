    select max(e.id)::float8 as last from (
      (select j.id from "queue_jobs" as j where j.id < $1::int8 and j.id > $2::int8
        order by j.id desc offset $3 limit 1) union all 
      (select r.job_id as id from "queue_results" as r
        where true and r.job_id < $4::int8 and r.job_id > $5::int8
        order by r.job_id desc offset $6 limit 1)
    ) as e
-- $1 = 42
-- $2 = 42
-- $3 = 99
-- $4 = 42
-- $5 = 42
-- $6 = 99
