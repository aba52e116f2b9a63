    select * from (
      (
      select j.id, j.queue, j.kind, case when j.worker_id is not null then 'running' when j.run_at = 'infinity' then 'waiting'
        when j.run_at > statement_timestamp() then 'scheduled' else 'due' end as state, j.payload, null::jsonb as output, j.errors,
        j.attempt, j.max_attempts, j.priority, j.unique_key, j.group_key, j.metadata, j.worker_id,
        date_part('epoch', j.created_at) * 1000 as created_at, date_part('epoch', j.run_at) * 1000 as run_at,
        date_part('epoch', j.claimed_at) * 1000 as claimed_at, null::float8 as finished_at,
        j.progress, j.cancel_reason, true as payload_kept
      from "queue_jobs" as j where j.id < $1 and j.queue = $2 and j.kind = $3 and case when j.worker_id is not null then 'running' when j.run_at = 'infinity' then 'waiting'
        when j.run_at > statement_timestamp() then 'scheduled' else 'due' end = $4 order by j.id desc limit $5)
    ) as record
    order by id desc limit $6
-- $1 = 42
-- $2 = "mail"
-- $3 = "mail"
-- $4 = "due"
-- $5 = 51
-- $6 = 51
