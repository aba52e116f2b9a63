    
      select j.id, j.queue, j.kind, case when j.worker_id is not null then 'running' when j.run_at = 'infinity' then 'waiting'
        when j.run_at > statement_timestamp() then 'scheduled' else 'due' end as state, j.payload, null::jsonb as output, j.errors,
        j.attempt, j.max_attempts, j.priority, j.unique_key, j.group_key, j.metadata, j.worker_id,
        date_part('epoch', j.created_at) * 1000 as created_at, date_part('epoch', j.run_at) * 1000 as run_at,
        date_part('epoch', j.claimed_at) * 1000 as claimed_at, null::float8 as finished_at,
        j.progress, j.cancel_reason, true as payload_kept
      from "queue_jobs" as j where j.id = $1
    union all 
      select r.job_id as id, r.queue, r.kind, r.state, r.payload, r.output, r.errors,
        r.attempt, r.max_attempts, r.priority, r.unique_key, r.group_key, r.metadata, r.worker_id,
        date_part('epoch', r.created_at) * 1000 as created_at, date_part('epoch', r.run_at) * 1000 as run_at,
        date_part('epoch', r.claimed_at) * 1000 as claimed_at, date_part('epoch', r.finished_at) * 1000 as finished_at,
        null::jsonb as progress, null::text as cancel_reason,
        r.payload is not null as payload_kept
      from "queue_results" as r where r.job_id = $2
-- $1 = 42
-- $2 = 42
