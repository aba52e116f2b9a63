    with i as materialized (
      select id, fence, attempt, statement_timestamp() + delay_ms * interval '1 millisecond' as run_at,
        nullif(error, 'null') || jsonb_build_object('at', to_char(statement_timestamp() at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')) as error, began
      from generate_series(1, $1::int4) as a cross join generate_series(1, $2::int4) as b cross join generate_series(1, $3::int4) as c
      cross join rows from (
        unnest($4::text::int8[]), unnest($5::text::int8[]),
        unnest($6::text::int2[]),
        unnest($7::text::float8[]),
        jsonb_array_elements($8::text::jsonb),
        unnest($9::text::bool[])
      ) as r(id, fence, attempt, delay_ms, error, began)
    )
    update "queue_jobs" as j
    set worker_id = null, claimed_at = null, attempt = i.attempt, run_at = coalesce(i.run_at, j.run_at),
      errors = case when i.error is null then j.errors
        else (case when jsonb_array_length(j.errors) >= 10 then j.errors - 0 else j.errors end) || i.error end, blockers = case when not i.began then j.blockers end
    from i
    where i.id = j.id and i.fence = j.fence and j.queue = $10 and j.id = any(array(select id from i))
        and j.worker_id is not distinct from $11::int8
        and ((j.id, j.fence) in (select id, fence from i)) is true
    returning j.id, j.cancel_reason
-- $1 = 1
-- $2 = 1
-- $3 = 1
-- $4 = "{42,43}"
-- $5 = "{1,1}"
-- $6 = "{1,0}"
-- $7 = "{1000,null}"
-- $8 = "[null,null]"
-- $9 = "{true,false}"
-- $10 = "mail"
-- $11 = 42
