    with discarded as materialized (
      select r.* from "queue_results" as r
      where r.state = 'discarded' and r.job_id = $1 and r.queue = $2 and r.kind = $3 and r.finished_at >= $4::timestamptz and r.finished_at < $5::timestamptz
      order by r.job_id limit $6::int8
      for no key update skip locked
    ),
    redriven as (
      insert into "queue_jobs" (id, queue, kind, payload, priority, run_at, attempt, max_attempts,
        weight, fence, batch_id, unique_key, group_key, errors, metadata,
        created_at) overriding system value
      select d.job_id, d.queue, d.kind, d.payload, d.priority, statement_timestamp(), 0, d.max_attempts,
        d.weight, d.fence, d.batch_id, d.unique_key, d.group_key, d.errors, d.metadata,
        d.created_at
      from discarded as d order by d.queue, d.kind, d.unique_key, d.job_id
      on conflict do nothing
      returning id, queue
    ),
    removed as (
      delete from "queue_results" as r
      where r.queue = $7 and (r.job_id, r.queue) in (
        select id, queue from redriven)
    )
    select (select count(*) from redriven)::float8 as redriven,
      (select count(*) from discarded)::float8 as discarded
-- $1 = 42
-- $2 = "mail"
-- $3 = "mail"
-- $4 = "2024-02-29T12:34:56.789Z"
-- $5 = "2024-02-29T12:34:56.789Z"
-- $6 = 10
-- $7 = "mail"
