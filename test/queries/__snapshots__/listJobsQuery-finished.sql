    select * from (
      (
      select r.job_id as id, r.queue, r.kind, r.state, r.payload, r.output, r.errors, r.attempt, r.max_attempts,
        r.priority, r.unique_key, r.metadata, r.worker_id, (extract(epoch from r.created_at) * 1000)::float8 as created_at,
        (extract(epoch from r.run_at) * 1000)::float8 as run_at, (extract(epoch from r.claimed_at) * 1000)::float8 as claimed_at, (extract(epoch from r.finished_at) * 1000)::float8 as finished_at
      from "queue_results" as r where r.job_id < $1 and r.queue = $2 and r.kind = $3 and r.state = $4 order by r.job_id desc limit $5)
    ) as record
    order by id desc limit $6
-- $1 = 42
-- $2 = "mail"
-- $3 = "mail"
-- $4 = "discarded"
-- $5 = 51
-- $6 = 51
