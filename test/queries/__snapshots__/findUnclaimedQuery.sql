    select u.queue, u.id from (
      (
        select j.queue, j.id from "queue_jobs" as j
        where j.batch_id = any($1::text::int8[]) and j.worker_id is null and j.cancel_reason is not null
          and j.run_at < statement_timestamp() - $2 * interval '1 millisecond'
        limit $3::int4
      )
      union
      (
        select j.queue, j.id from "queue_waits" as i
        join "queue_jobs" as j on j.queue = i.queue and j.id = i.job_id
        where i.batch_id = any($4::text::int8[]) and i.policy = 'cancel'
          and j.worker_id is null and j.cancel_reason is not null
          and j.run_at < statement_timestamp() - $5 * interval '1 millisecond'
        limit $6::int4
      )
    ) as u order by u.id
-- $1 = "{42}"
-- $2 = 10000
-- $3 = 1000
-- $4 = "{42,43}"
-- $5 = 10000
-- $6 = 1000
