    select i.id, coalesce(j.fence, r.fence) as fence, coalesce(j.attempt, r.attempt) as attempt, r.state,
      coalesce(j.worker_id, r.worker_id) is not null as held, j.cancel_reason,
      coalesce(j.errors, r.errors) as errors
    from rows from (unnest($1::text::int8[]), unnest($2::text::int8[])) as i(id, fence)
    left join lateral (
      select j.fence, j.attempt, j.worker_id, j.cancel_reason, j.errors from "queue_jobs" as j
      where j.queue = $3 and j.id = i.id limit 1
    ) as j on true
    left join lateral (
      select r.fence, r.attempt, r.worker_id, r.state, r.errors from "queue_results" as r
      where j.fence is null and r.queue = $4 and r.job_id = i.id limit 1
    ) as r on true
    where j.fence is not null or r.fence is not null
-- $1 = "{42}"
-- $2 = "{3}"
-- $3 = "mail"
-- $4 = "mail"
