    with i as materialized (
      select id, fence, coalesce(state, 'completed') as state, coalesce(keep, true) as keep,
        nullif(output, 'null') as output,
        nullif(error, 'null') || jsonb_build_object('at', to_char(statement_timestamp() at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')) as error
      from generate_series(1, $1::int4) as a cross join generate_series(1, $2::int4) as b cross join generate_series(1, $3::int4) as c
      cross join rows from (unnest($4::text::int8[]), unnest($5::text::int8[]), unnest($6::text::text[]), unnest($7::text::bool[]),
        jsonb_array_elements($8::text::jsonb),
        jsonb_array_elements($9::text::jsonb))
        as r(id, fence, state, keep, output, error)
    ),
    finished as (
    delete from "queue_jobs" as j
    where j.queue = $10 and j.id = any(array(select id from i))
        and j.worker_id is not distinct from $11::int8
        and ((j.id, j.fence) in (select id, fence from i)) is true
        and (j.cancel_reason is null or j.id not in (select id from i where state = 'discarded'))
    returning j.*
    ),
    recorded as (
      insert into "queue_results" (job_id, queue, kind, payload, state, output, errors, attempt, max_attempts,
        priority, weight, fence, batch_id, unique_key, group_key, metadata, worker_id, created_at, run_at,
        claimed_at, finished_at)
      select f.id, f.queue, f.kind, f.payload, i.state, i.output, case when i.error is null then f.errors
        else (case when jsonb_array_length(f.errors) >= 10 then f.errors - 0 else f.errors end) || i.error end,
        f.attempt, f.max_attempts, f.priority, f.weight, f.fence, f.batch_id, f.unique_key, f.group_key,
        f.metadata, f.worker_id, f.created_at, f.run_at, f.claimed_at,
        statement_timestamp()
      from finished as f join i on i.id = f.id and i.fence = f.fence
      where i.keep
    )
    select id, fence from i where (id, fence) not in (select id, fence from finished)
-- $1 = 1
-- $2 = 1
-- $3 = 1
-- $4 = "{42,43}"
-- $5 = "{1,2}"
-- $6 = "{completed,discarded}"
-- $7 = "{}"
-- $8 = "[{\"text\":\"mail\"},null]"
-- $9 = "[null,{\"attempt\":1,\"name\":\"Error\",\"message\":\"mail\",\"stack\":\"mail\"}]"
-- $10 = "mail"
-- $11 = 42
