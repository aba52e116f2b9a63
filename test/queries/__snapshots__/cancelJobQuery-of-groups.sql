    with free as (
      select j.id from "queue_jobs" as j
      where j.queue = $1 and j.id = $2 and j.worker_id is null
      for no key update skip locked
    ),
    cancelled as (
    delete from "queue_jobs" as j
    where j.queue = $3 and j.id = any(array(select id from free))
    returning j.*, j.group_key as ended_group, j.run_at as ended_run_at
    ),
    noted as (
      insert into "queue_notes" (queue, due_at, group_keys)
      select n.queue, n.due_at, array_agg(n.group_key)
      from (
        select g.*,
          (row_number() over (partition by g.queue, g.due_at) - 1) / 20 as part
        from (
        select distinct $4::text as queue, statement_timestamp() as due_at, e.ended_group as group_key
        from cancelled as e
        where e.ended_group is not null
        ) as g
      ) as n
      group by n.queue, n.due_at, n.part
    ),
    unblocked as (
      delete from "queue_holds" as h using cancelled as u
      where h.queue = $5::text
        and h.group_key = u.group_key and h.job_id = u.id
    ),
    recorded as (
    insert into "queue_results" (job_id, queue, kind, payload, state, errors, attempt, max_attempts, priority,
      weight, fence, batch_id, unique_key, group_key, metadata, worker_id, created_at, run_at, claimed_at,
      finished_at)
    select c.id, c.queue, c.kind, c.payload, 'cancelled',
      case when ($6::text::jsonb || jsonb_build_object('at', to_char(statement_timestamp() at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'))) is null then c.errors
        else (case when jsonb_array_length(c.errors) >= 10 then c.errors - 0 else c.errors end) || ($7::text::jsonb || jsonb_build_object('at', to_char(statement_timestamp() at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'))) end,
      c.attempt, c.max_attempts, c.priority, c.weight, c.fence, c.batch_id, c.unique_key, c.group_key,
      c.metadata, c.worker_id, c.created_at,
      case when c.run_at = 'infinity' then statement_timestamp() else c.run_at end, c.claimed_at,
      statement_timestamp()
    from cancelled as c
    returning job_id, metadata)
    select r.job_id as id, case when r.metadata @> '{"drizzle_queue.awaited": true}' then pg_notify($8::text, r.job_id::text) is not null end as told from recorded as r
-- $1 = "mail"
-- $2 = 42
-- $3 = "mail"
-- $4 = "mail"
-- $5 = "mail"
-- $6 = "{\"attempt\":1,\"name\":\"Error\",\"message\":\"mail\",\"stack\":\"mail\"}"
-- $7 = "{\"attempt\":1,\"name\":\"Error\",\"message\":\"mail\",\"stack\":\"mail\"}"
-- $8 = "queue_end_queue_jobs"
