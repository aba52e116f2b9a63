    with free as materialized (
      select j.id from "queue_jobs" as j cross join set_config('lock_timeout', $1::text, true) as patience
      where j.queue = $2 and j.id = any(array(select unnest($3::text::int8[])))
        and j.worker_id is null and j.cancel_reason is not null
      order by j.id for update of j skip locked
    ),
    cancelled as (
    delete from "queue_jobs" as j
    where j.queue = $4 and j.id = any(array(select id from free))
    returning j.*, j.batch_id as member_of
    ),
    tallied as (
      insert into "queue_tallies" (batch_id, ended, failed, cancel_reason)
      select e.member_of, count(*)::int4, count(*) filter (where true)::int4, null
      from cancelled as e where e.member_of is not null
      group by e.member_of
      union all
      select w.batch_id, 0, 0, $5
      from cancelled as e join "queue_waits" as w on w.job_id = e.id and w.policy = 'parent'
      where true
    ),
    recorded as (
    insert into "queue_results" (job_id, queue, kind, payload, state, errors, attempt, max_attempts, priority,
      weight, fence, batch_id, unique_key, group_key, metadata, worker_id, created_at, run_at, claimed_at,
      finished_at)
    select c.id, c.queue, c.kind, c.payload, 'cancelled',
      case when ($6::text::jsonb || jsonb_build_object('attempt', c.attempt, 'message', c.cancel_reason) || jsonb_build_object('at', to_char(statement_timestamp() at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'))) is null then c.errors
        else (case when jsonb_array_length(c.errors) >= 10 then c.errors - 0 else c.errors end) || ($7::text::jsonb || jsonb_build_object('attempt', c.attempt, 'message', c.cancel_reason) || jsonb_build_object('at', to_char(statement_timestamp() at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'))) end,
      c.attempt, c.max_attempts, c.priority, c.weight, c.fence, c.batch_id, c.unique_key, c.group_key,
      c.metadata, c.worker_id, c.created_at,
      case when c.run_at = 'infinity' then statement_timestamp() else c.run_at end, c.claimed_at,
      statement_timestamp()
    from cancelled as c
    returning job_id, metadata, batch_id)
    select r.job_id as id, case when r.metadata @> '{"drizzle_queue.awaited": true}' then pg_notify($8::text, r.job_id::text) is not null end as told, r.batch_id from recorded as r
-- $1 = "100ms"
-- $2 = "mail"
-- $3 = "{42}"
-- $4 = "mail"
-- $5 = "The job that enqueued it was cancelled"
-- $6 = "{\"attempt\":0,\"name\":\"Cancelled\",\"message\":\"\"}"
-- $7 = "{\"attempt\":0,\"name\":\"Cancelled\",\"message\":\"\"}"
-- $8 = "queue_end_queue_jobs"
