    (
      select j.id, j.queue, j.kind,
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
        left(j.errors -> -1 ->> 'message', 300) as error from "queue_jobs" as j where (j.batch_id, j.id) > ($2::int8, $3::int8)
          and j.batch_id <= $4::int8
      order by j.batch_id, j.id limit $5::int4
    )
    union all
    (
      select r.job_id as id, r.queue, r.kind,
        r.state as state,
        r.attempt, r.max_attempts, r.priority, r.unique_key, r.group_key, r.worker_id,
        false as cancelling,
        date_part('epoch', r.created_at) * 1000 as created_at,
        date_part('epoch', nullif(r.run_at, 'infinity')) * 1000 as run_at,
        date_part('epoch', r.claimed_at) * 1000 as claimed_at,
        date_part('epoch', r.finished_at) * 1000 as finished_at,
        case when pg_column_size(r.payload) <= 262144
          then left(r.payload::text, $6) end as payload,
        r.payload is not null as payload_kept,
        left(r.errors -> -1 ->> 'name', 100) as error_name,
        left(r.errors -> -1 ->> 'message', 300) as error from "queue_results" as r where (r.batch_id, r.job_id) > ($7::int8, $8::int8)
          and r.batch_id <= $9::int8
      order by r.batch_id, r.job_id limit $10::int4
    )
    order by id limit $11::int4
-- $1 = 240
-- $2 = 42
-- $3 = 0
-- $4 = 42
-- $5 = 101
-- $6 = 240
-- $7 = 42
-- $8 = 0
-- $9 = 42
-- $10 = 101
-- $11 = 101
