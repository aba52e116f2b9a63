    with i as materialized (
      select id, fence, attempt, statement_timestamp() + delay_ms * interval '1 millisecond' as run_at,
        error || jsonb_build_object('at', to_char(statement_timestamp() at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')) as error
      from (
        select r.id, r.fence, r.delay_ms, r.attempt, r.error, 0 + r.place as place
        from rows from (jsonb_to_recordset($1::text::jsonb) as (id int8, fence int4, delay_ms float8, attempt int2, error jsonb)) with ordinality
          as r(id, fence, delay_ms, attempt, error, place)) as r
    )
    update "queue_jobs" as j
    set worker_id = null, claimed_at = null, attempt = i.attempt, run_at = coalesce(i.run_at, j.run_at),
      errors = case when i.error is null then j.errors
        else (case when jsonb_array_length(j.errors) >= 10 then j.errors - 0 else j.errors end) || jsonb_build_array(i.error) end
    from i
    where i.id = j.id and i.fence = j.fence and j.queue = $2 and j.id = any(array(select id from i))
        and j.worker_id is not distinct from $3::int8 and (j.id, j.fence) in (select id, fence from i)
    returning j.id
-- $1 = "[{\"id\":42,\"fence\":1,\"delay_ms\":1000,\"attempt\":1,\"error\":{\"attempt\":1,\"name\":\"Error\",\"message\":\"mail\",\"stack\":\"mail\"}},{\"id\":43,\"fence\":2,\"delay_ms\":null,\"attempt\":0,\"error\":null}]"
-- $2 = "mail"
-- $3 = 42
