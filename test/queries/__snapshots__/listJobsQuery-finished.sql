    select * from (
      (
      select r.job_id as id, r.queue, r.kind, r.state, r.payload, r.output, r.errors,
        r.attempt, r.max_attempts, r.priority, r.unique_key, r.group_key, r.metadata, r.worker_id,
        date_part('epoch', r.created_at) * 1000 as created_at, date_part('epoch', r.run_at) * 1000 as run_at,
        date_part('epoch', r.claimed_at) * 1000 as claimed_at, date_part('epoch', r.finished_at) * 1000 as finished_at,
        null::jsonb as progress, null::text as cancel_reason,
        r.payload is not null as payload_kept
      from "queue_results" as r where r.job_id < $1 and r.queue = $2 and r.kind = $3 and r.state = $4 order by r.job_id desc limit $5)
    ) as record
    order by id desc limit $6
-- $1 = 42
-- $2 = "mail"
-- $3 = "mail"
-- $4 = "discarded"
-- $5 = 51
-- $6 = 51
