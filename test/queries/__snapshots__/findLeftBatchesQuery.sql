    select b.id from "queue_batches" as b
    where b.id > $1::int8 and b.id <= coalesce($2::int8, b.id)
      and b.ended_at < statement_timestamp() - $3 * interval '1 millisecond'
      and not exists (select from "queue_results" as r where r.batch_id = b.id)
      and (select j.id from "queue_jobs" as j where j.batch_id = b.id limit 1) is null
      and not exists (
        select from "queue_waits" as i join "queue_jobs" as j on j.queue = i.queue and j.id = i.job_id
        where i.batch_id = b.id
      )
      and (
        select r.job_id from "queue_waits" as i
        join "queue_results" as r on r.queue = i.queue and r.job_id = i.job_id
        where i.batch_id = b.id and i.policy in ('run', 'cancel', 'forked') limit 1
      ) is null
      and (
        select o.id from "queue_batches" as o where o.id = b.flow_id and o.ended_at is null limit 1
      ) is null
-- $1 = 42
-- $2 = null
-- $3 = 3600000
