    with batches as materialized (
      select j.batch_id from "queue_jobs" as j where j.id = $1::int8
      union all
      select r.batch_id from "queue_results" as r where r.job_id = $2::int8
      union all
      (
        select w.batch_id from "queue_waits" as w
        where w.job_id = $3::int8 and w.policy in ('run', 'cancel') limit 1
      )
    )
    select b.flow_id from "queue_batches" as b
    where b.id = any(array(select batch_id from batches)) and b.flow_id is not null limit 1
-- $1 = 42
-- $2 = 42
-- $3 = 42
