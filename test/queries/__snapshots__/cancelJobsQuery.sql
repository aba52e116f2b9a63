    with free as materialized (
      select j.id from "queue_jobs" as j
      where j.id = any(array(select unnest($1::text::int8[]))) and j.queue = $2 and j.kind = $3 and j.group_key = $4 and case when j.worker_id is not null then 'running' when j.run_at = 'infinity' then 'waiting'
        when j.run_at > statement_timestamp() then 'scheduled' else 'due' end = $5 and j.created_at >= $6::timestamptz and j.created_at < $7::timestamptz and j.payload @> $8::text::jsonb and j.worker_id is null
      order by j.id
      for no key update skip locked
    ),
    cancelled as (
    delete from "queue_jobs" as j
    where j.queue = $9 and j.id = any(array(select id from free))
    returning j.*
    ),
    recorded as (
    insert into "queue_results" (job_id, queue, kind, payload, state, errors, attempt, max_attempts, priority,
      weight, fence, batch_id, unique_key, group_key, metadata, worker_id, created_at, run_at, claimed_at,
      finished_at)
    select c.id, c.queue, c.kind, c.payload, 'cancelled',
      case when ($10::text::jsonb || jsonb_build_object('attempt', c.attempt) || jsonb_build_object('at', to_char(statement_timestamp() at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'))) is null then c.errors
        else (case when jsonb_array_length(c.errors) >= 10 then c.errors - 0 else c.errors end) || ($11::text::jsonb || jsonb_build_object('attempt', c.attempt) || jsonb_build_object('at', to_char(statement_timestamp() at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'))) end,
      c.attempt, c.max_attempts, c.priority, c.weight, c.fence, c.batch_id, c.unique_key, c.group_key,
      c.metadata, c.worker_id, c.created_at,
      case when c.run_at = 'infinity' then statement_timestamp() else c.run_at end, c.claimed_at,
      statement_timestamp()
    from cancelled as c
    returning job_id, metadata)
    select r.job_id as id, case when r.metadata @> '{"drizzle_queue.awaited": true}' then pg_notify($12::text, r.job_id::text) is not null end as told from recorded as r
-- $1 = "{42}"
-- $2 = "mail"
-- $3 = "mail"
-- $4 = "mail"
-- $5 = "due"
-- $6 = "2024-02-29T12:34:56.789Z"
-- $7 = "2024-02-29T12:34:56.789Z"
-- $8 = "{\"text\":\"mail\"}"
-- $9 = "mail"
-- $10 = "{\"name\":\"mail\",\"message\":\"mail\"}"
-- $11 = "{\"name\":\"mail\",\"message\":\"mail\"}"
-- $12 = "queue_end_queue_jobs"
