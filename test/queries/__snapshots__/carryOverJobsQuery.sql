    with i as materialized (
      select id, attempt, to_timestamp(created_at_ms / 1000) as created_at, (
          select coalesce(jsonb_agg($1::text::jsonb || jsonb_build_object('attempt', n) || jsonb_build_object('at', to_char(statement_timestamp() at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')) order by n), '[]')
          from generate_series(greatest(attempt - $2::int4, 1), attempt) as n
        ) as errors
      from generate_series(1, $3::int4) as a cross join generate_series(1, $4::int4) as b cross join generate_series(1, $5::int4) as c cross join rows from (
        unnest($6::text::int8[]), unnest($7::text::int2[]), unnest($8::text::float8[])
      ) as r(id, attempt, created_at_ms)
    )
    update "queue_jobs" as j
    set attempt = i.attempt, errors = i.errors, created_at = coalesce(i.created_at, j.created_at)
    from i
    where j.queue = $9 and j.id = any(array(select id from i)) and i.id = j.id
      and j.worker_id is null and j.attempt = 0
    returning j.id
-- $1 = "{\"name\":\"Error\",\"message\":\"Failed before the import\"}"
-- $2 = 9
-- $3 = 1
-- $4 = 1
-- $5 = 1
-- $6 = "{42,42}"
-- $7 = "{2,0}"
-- $8 = "{1709210096789,null}"
-- $9 = "mail"
