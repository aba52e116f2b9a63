    select * from (
      (select r.job_id as id, r.queue, r.kind,
        r.state as state,
        r.attempt, r.max_attempts, r.priority, r.unique_key, r.group_key, r.worker_id,
        false as cancelling,
        date_part('epoch', r.created_at) * 1000 as created_at,
        date_part('epoch', nullif(r.run_at, 'infinity')) * 1000 as run_at,
        date_part('epoch', r.claimed_at) * 1000 as claimed_at,
        date_part('epoch', r.finished_at) * 1000 as finished_at,
        case when pg_column_size(r.payload) <= 262144
          then left(r.payload::text, $1) end as payload,
        r.payload is not null as payload_kept,
        left(r.errors -> -1 ->> 'name', 100) as error_name,
        left(r.errors -> -1 ->> 'message', 300) as error from (
        select r.* from (
          select r.job_id from "queue_results" as r
          where r.group_key = $2 and r.job_id < $3
          order by r.job_id desc limit $4
        ) as i cross join lateral (
          select r.* from "queue_results" as r where r.job_id = i.job_id limit 1
        ) as r
        where r.group_key = $5 and r.state = $6 and r.job_id < $7
        order by i.job_id desc limit $8
      ) as r)
    ) as line
    order by id desc limit $9
-- $1 = 240
-- $2 = "mail"
-- $3 = 42
-- $4 = 100
-- $5 = "mail"
-- $6 = "completed"
-- $7 = 42
-- $8 = 10
-- $9 = 10
