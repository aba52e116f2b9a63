    select u.queue, u.id from (
      (
        select j.queue, j.id from "queue_jobs" as j
        where j.batch_id = any($1::text::int8[]) and j.worker_id is null and j.cancel_reason is not null and j.id > $2::int8
          and (j.run_at < statement_timestamp() - $3 * interval '1 millisecond'
            or j.run_at > statement_timestamp())
        order by j.id limit $4::int4
      )
      union
      (
        select j.queue, j.id from "queue_waits" as i
        join "queue_jobs" as j on j.queue = i.queue and j.id = i.job_id
        where i.batch_id = any($5::text::int8[]) and i.policy = 'cancel'
          and j.worker_id is null and j.cancel_reason is not null and j.id > $6::int8
          and (j.run_at < statement_timestamp() - $7 * interval '1 millisecond'
            or j.run_at > statement_timestamp())
        order by j.id limit $8::int4
      )
    ) as u order by u.id limit $9::int4
-- $1 = "{42}"
-- $2 = 0
-- $3 = 10000
-- $4 = 1000
-- $5 = "{42,43}"
-- $6 = 0
-- $7 = 10000
-- $8 = 1000
-- $9 = 1000
