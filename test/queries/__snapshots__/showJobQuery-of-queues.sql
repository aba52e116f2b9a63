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
        left(j.errors -> -1 ->> 'message', 300) as error, j.errors, j.cancel_reason,
        left(jsonb_pretty(j.payload), $2) as payload_text,
        length(jsonb_pretty(j.payload))::float8 as payload_length,
        left(jsonb_pretty(j.metadata), $3) as metadata_text,
        length(jsonb_pretty(j.metadata))::float8 as metadata_length,
      
        left(null::text, $4) as output_text,
        length(null::text)::float8 as output_length,
        left(jsonb_pretty(j.progress), $5) as progress_text,
        length(jsonb_pretty(j.progress))::float8 as progress_length
    from "queue_jobs" as j where j.id = $6::int8 and j.queue in (
        select jsonb_array_elements_text($7::text::jsonb))
    union all
    select r.job_id as id, r.queue, r.kind,
        r.state as state,
        r.attempt, r.max_attempts, r.priority, r.unique_key, r.group_key, r.worker_id,
        false as cancelling,
        date_part('epoch', r.created_at) * 1000 as created_at,
        date_part('epoch', nullif(r.run_at, 'infinity')) * 1000 as run_at,
        date_part('epoch', r.claimed_at) * 1000 as claimed_at,
        date_part('epoch', r.finished_at) * 1000 as finished_at,
        case when pg_column_size(r.payload) <= 262144
          then left(r.payload::text, $8) end as payload,
        r.payload is not null as payload_kept,
        left(r.errors -> -1 ->> 'name', 100) as error_name,
        left(r.errors -> -1 ->> 'message', 300) as error, r.errors, null::text,
        left(jsonb_pretty(r.payload), $9) as payload_text,
        length(jsonb_pretty(r.payload))::float8 as payload_length,
        left(jsonb_pretty(r.metadata), $10) as metadata_text,
        length(jsonb_pretty(r.metadata))::float8 as metadata_length,
      
        left(jsonb_pretty(r.output), $11) as output_text,
        length(jsonb_pretty(r.output))::float8 as output_length,
        left(null::text, $12) as progress_text,
        length(null::text)::float8 as progress_length
    from "queue_results" as r where r.job_id = $13::int8 and r.queue in (
        select jsonb_array_elements_text($14::text::jsonb))
    limit 1
-- $1 = 0
-- $2 = 100
-- $3 = 100
-- $4 = 100
-- $5 = 100
-- $6 = 42
-- $7 = "[\"mail\"]"
-- $8 = 0
-- $9 = 100
-- $10 = 100
-- $11 = 100
-- $12 = 100
-- $13 = 42
-- $14 = "[\"mail\"]"
