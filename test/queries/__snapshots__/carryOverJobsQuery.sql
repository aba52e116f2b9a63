    with i as materialized (
      select id, attempt, to_timestamp(created_at_ms / 1000) as created_at
      from generate_series(1, $1::int4) as a cross join generate_series(1, $2::int4) as b cross join generate_series(1, $3::int4) as c cross join rows from (
        unnest($4::text::int8[]), unnest($5::text::int2[]), unnest($6::text::float8[])
      ) as r(id, attempt, created_at_ms)
    )
    update "queue_jobs" as j
    set attempt = i.attempt, created_at = coalesce(i.created_at, j.created_at)
    from i
    where j.queue = $7 and j.id = any(array(select id from i)) and i.id = j.id
      and j.worker_id is null and j.attempt = 0
    returning j.id
-- $1 = 1
-- $2 = 1
-- $3 = 1
-- $4 = "{42,42}"
-- $5 = "{2,0}"
-- $6 = "{1709210096789,null}"
-- $7 = "mail"
