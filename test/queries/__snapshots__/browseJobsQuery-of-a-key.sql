    select * from (
      (select j.id, j.queue, j.kind,
        case when j.worker_id is not null then 'running' when j.run_at = 'infinity' then 'waiting'
        when j.run_at > statement_timestamp() then 'scheduled' else 'due' end as state,
        j.attempt, j.max_attempts, j.priority, j.unique_key, j.group_key, j.worker_id,
        j.cancel_reason is not null as cancelling,
        date_part('epoch', j.created_at) * 1000 as created_at,
        date_part('epoch', nullif(j.run_at, 'infinity')) * 1000 as run_at,
        date_part('epoch', j.claimed_at) * 1000 as claimed_at,
        null::float8 as finished_at,
        case when pg_column_size(j.payload) <= 262144
          then left(j.payload::text, $1) end as payload,
        true as payload_kept,
        left(j.errors -> -1 ->> 'name', 100) as error_name,
        left(j.errors -> -1 ->> 'message', 300) as error from (
        select j.* from (
          (
            with recursive pair as (
      (
        select j.queue, j.kind from "queue_jobs" as j
        where j.unique_key is not null order by j.queue, j.kind limit 1
      )
      union all
      select n.* from pair as w cross join lateral (
        select j.queue, j.kind from "queue_jobs" as j
        where j.unique_key is not null and (j.queue, j.kind) > (w.queue, w.kind)
        order by j.queue, j.kind limit 1
      ) as n
    )
            select j.* from pair as p cross join lateral (
              select j.* from "queue_jobs" as j
              where j.queue = p.queue and j.kind = p.kind and j.unique_key = $2 limit 2
            ) as j
          )
          union all
          (
            with recursive pair as (
      (
        select j.queue, j.kind from "queue_jobs" as j
        where j.waiting_key is not null order by j.queue, j.kind limit 1
      )
      union all
      select n.* from pair as w cross join lateral (
        select j.queue, j.kind from "queue_jobs" as j
        where j.waiting_key is not null and (j.queue, j.kind) > (w.queue, w.kind)
        order by j.queue, j.kind limit 1
      ) as n
    )
            select j.* from pair as p cross join lateral (
              select j.* from "queue_jobs" as j
              where j.queue = p.queue and j.kind = p.kind and j.waiting_key in ($3, $4) and j.unique_key is distinct from $5 limit 2
            ) as j
          )
        ) as j
        where (j.unique_key = $6 or j.waiting_key in ($7, $8))
        order by j.id desc limit $9
      ) as j) union all 
      (select r.job_id as id, r.queue, r.kind,
        r.state as state,
        r.attempt, r.max_attempts, r.priority, r.unique_key, r.group_key, r.worker_id,
        false as cancelling,
        date_part('epoch', r.created_at) * 1000 as created_at,
        date_part('epoch', nullif(r.run_at, 'infinity')) * 1000 as run_at,
        date_part('epoch', r.claimed_at) * 1000 as claimed_at,
        date_part('epoch', r.finished_at) * 1000 as finished_at,
        case when pg_column_size(r.payload) <= 262144
          then left(r.payload::text, $10) end as payload,
        r.payload is not null as payload_kept,
        left(r.errors -> -1 ->> 'name', 100) as error_name,
        left(r.errors -> -1 ->> 'message', 300) as error from (
        select r.* from (
          select r.job_id from "queue_results" as r
          where r.unique_key = $11
          order by r.job_id desc limit $12
        ) as i cross join lateral (
          select r.* from "queue_results" as r where r.job_id = i.job_id limit 1
        ) as r
        where r.unique_key = $13
        order by i.job_id desc limit $14
      ) as r)
    ) as line
    order by id desc limit $15
-- $1 = 240
-- $2 = "mail"
-- $3 = "mail"
-- $4 = "throttle:mail"
-- $5 = "mail"
-- $6 = "mail"
-- $7 = "mail"
-- $8 = "throttle:mail"
-- $9 = 10
-- $10 = 240
-- $11 = "mail"
-- $12 = 100
-- $13 = "mail"
-- $14 = 10
-- $15 = 10
