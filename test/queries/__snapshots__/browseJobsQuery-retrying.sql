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
          select j.* from "queue_jobs" as j where j.errors <> '[]'::jsonb limit $2
        ) as j
        where (j.errors <> '[]'::jsonb and j.attempt > 0 and j.worker_id is null and j.run_at < 'infinity')
        order by j.id desc limit $3
      ) as j)
    ) as line
    order by id desc limit $4
-- $1 = 240
-- $2 = 100
-- $3 = 10
-- $4 = 10
