    with i as materialized (
      select id, fence, state, keep, output, error || jsonb_build_object('at', to_char(statement_timestamp() at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')) as error
      from (
        select r.id, r.fence, r.state, r.keep, r.output, r.error, 0 + r.place as place
        from rows from (jsonb_to_recordset($1::text::jsonb) as (id int8, fence int4, state text, keep bool, output jsonb, error jsonb)) with ordinality
          as r(id, fence, state, keep, output, error, place)) as r
    ),
    finished as (
      delete from "queue_jobs" as j
      where j.queue = $2 and j.id = any(array(select id from i))
        and j.worker_id is not distinct from $3::int8 and (j.id, j.fence) in (select id, fence from i)
      returning j.*
    ),
    recorded as (
      insert into "queue_results" (job_id, queue, kind, payload, state, output, errors, attempt, max_attempts, priority, fence,
        unique_key, metadata, worker_id, created_at, run_at, claimed_at, finished_at)
      select f.id, f.queue, f.kind, f.payload, i.state, i.output, case when i.error is null then f.errors
        else (case when jsonb_array_length(f.errors) >= 10 then f.errors - 0 else f.errors end) || jsonb_build_array(i.error) end, f.attempt, f.max_attempts, f.priority, f.fence,
        f.unique_key, f.metadata, f.worker_id, f.created_at, f.run_at, f.claimed_at, statement_timestamp()
      from finished as f join i on i.id = f.id and i.fence = f.fence
      where i.keep
    )
    select id from finished
-- $1 = "[{\"id\":42,\"fence\":1,\"state\":\"completed\",\"keep\":true,\"output\":{\"text\":\"mail\"},\"error\":null},{\"id\":43,\"fence\":2,\"state\":\"discarded\",\"keep\":true,\"output\":null,\"error\":{\"attempt\":1,\"name\":\"Error\",\"message\":\"mail\",\"stack\":\"mail\"}}]"
-- $2 = "mail"
-- $3 = 42
